/** The controls: where the scene comes from, K, T, noise, and the palette. They show what the session holds. */
import { byId, make, percent, say } from './dom.js'
import { css } from './pictures.js'
import { capitalised } from './words.js'

/** @typedef {import('./session.js').Session} Session */

const MOST_THINGS = 8

export class Controls {
  /** @param {Session} session @param {import('./stage.js').Stage} stage @param {(said: string) => void} tell */
  constructor(session, stage, tell) {
    this.session = session
    this.stage = stage
    this.tell = tell
    this.signal = stage.controller.signal
    this.listen()
    this.palette()
    this.fit()
  }

  /** What there is to choose from depends on the world. */
  fit() {
    const { world, tagger: { config } } = this.session, things = world.kinds.length > 0
    byId('objects').max = Math.max(world.objects, world.name === 'shapes' || world.name === 'sprites' ? 5 : 3)
    say(byId('objects-label'), `${capitalised(world.noun)}s`)
    byId('objects').closest('label').hidden = !world.objects
    byId('sources').hidden = !world.count
    say(byId('sources').querySelector('span'), world.name === 'own' ? 'File' : 'Test set')
    byId('about-grey').hidden = config.kind !== 'binary'
    byId('number').max = world.count - 1
    byId('noise').max = config.kind === 'binary' ? 0.4 : 0.5
    byId('tools').hidden = !things && !world.draws
    byId('pens').hidden = !world.draws
    say(byId('of-own'), `This scene is yours.${ownHint(things, world.draws)}`)
    say(byId('tools-legend'), !things ? 'Draw' : world.draws ? `Add a ${world.noun}, or draw` : `Add a ${world.noun}`)
  }

  /** @param {string} id @param {string} event @param {(event: any) => void} act */
  on(id, event, act) {
    byId(id).addEventListener(event, act, { signal: this.signal })
  }

  listen() {
    const { session } = this
    this.on('previous', 'click', () => this.go((session.view.scene.number ?? 0) - 1))
    this.on('next', 'click', () => this.go((session.view.scene.number ?? -1) + 1))
    this.on('number', 'change', (event) => this.typed(event.target))
    this.on('another', 'click', () => this.random())
    this.on('objects', 'input', (event) => {
      session.view.objects = Number(event.target.value)
      this.random()
    })
    this.on('sources', 'change', (event) => this.source(event.target.value))
    this.on('k', 'input', (event) => this.number('k', event.target))
    this.on('t', 'input', (event) => this.number('t', event.target))
    this.on('noise', 'input', (event) => session.set({ noise: Number(event.target.value) }))
    this.on('pens', 'change', (event) => {
      if (event.target.name !== 'tool') return
      this.stage.tool = event.target.value
      session.tell({ regrouped: false, live: session.live })
    })
    this.on('clear', 'click', () => session.choose({ scene: session.world.empty(session.view.scene), source: 'own' }))
    this.on('restore', 'click', () => {
      session.set({ hidden: new Set(), removed: new Set() })
      this.tell('All groups are shown again.')
    })
  }

  /** @param {'k' | 't'} name @param {HTMLInputElement} input */
  number(name, input) {
    const { hidden, removed } = this.session.view
    this.session.set({ [name]: Number(input.value) })
    if (name === 'k' && hidden.size + removed.size) this.tell('Another K makes other groups: all are shown again.')
  }

  palette() {
    const { world } = this.session
    byId('palette').replaceChildren(...world.kinds.map((/** @type {string} */ kind) => {
      const label = world.kindName(kind)
      return make('button', { class: 'stamp', title: label, 'aria-label': `Add ${label}`, onclick: () => this.add(kind) }, world.stamp ? this.stamp(kind) : kind)
    }))
  }

  /** The colours of new things and of the pen. @param {import('./pictures.js').Painter} painter */
  colours(painter) {
    const { world } = this.session, { swatches, colours } = world
    byId('colours').hidden = swatches.length < 2
    if (swatches.length < 2) return
    byId('colours').replaceChildren(...swatches.map((/** @type {number} */ index, /** @type {number} */ number) => {
      const patch = make('span'), colour = painter.mixed((c) => colours[index][c])
      patch.style.backgroundColor = css(colour)
      return make('label', {}, make('input', {
        type: 'radio', name: 'colour', value: number, checked: number === this.stage.swatch, 'aria-label': world.colourName(index),
        onchange: () => (this.stage.swatch = number),
      }), patch)
    }))
  }

  /** A small picture of a shape. @param {string} kind */
  stamp(kind) {
    const mask = this.session.world.stamp(kind), space = 'http://www.w3.org/2000/svg'
    const picture = document.createElementNS(space, 'svg')
    picture.setAttribute('viewBox', `-1 -1 ${mask[0].length + 2} ${mask.length + 2}`)
    picture.setAttribute('aria-hidden', 'true')
    const path = document.createElementNS(space, 'path')
    const cells = mask.flatMap((/** @type {string} */ line, /** @type {number} */ row) => [...line].map((mark, col) => (mark === '#' ? `M${col} ${row}h1v1h-1z` : '')))
    path.setAttribute('d', cells.join(''))
    picture.append(path)
    return picture
  }

  /** @param {string} kind */
  add(kind) {
    const { world, view } = this.session
    if (view.scene.things.length >= MOST_THINGS) return this.tell(`${MOST_THINGS} are enough: take one out first.`)
    const made = world.make(kind, view.scene, this.stage.swatch), turn = view.scene.things.length % 5
    const apart = (/** @type {number[]} */ steps, /** @type {number} */ side) => Math.round((steps[turn] * side) / 20)
    const thing = world.moved(made, made.row + apart([0, -4, 4, -2, 2], world.height), made.col + apart([0, 4, -4, -5, 5], world.width))
    this.session.set({ scene: { ...view.scene, things: [...view.scene.things, thing], number: undefined }, source: 'own' })
    this.tell(`The ${world.title(thing)} is added: ${this.stage.tool === 'move' ? 'drag it' : 'choose Drag to move it'}.`)
  }

  /** @param {number} number */
  go(number) {
    const { count } = this.session.world
    this.session.choose({ scene: this.session.world.test((number + count) % count), source: 'test' })
  }

  /** A scene number that was typed, or the last one again. @param {HTMLInputElement} input */
  typed(input) {
    const { count } = this.session.world, number = Number(input.value)
    if (input.value.trim() && Number.isInteger(number) && number >= 0 && number < count) return this.go(number)
    this.tell(`There are scenes 0 to ${count - 1}.`)
    this.render()
  }

  random() {
    const { world, view } = this.session
    const seed = Math.floor(Math.random() * 1e9)
    this.session.choose({ scene: world.random(view.objects, seed), source: 'random' })
  }

  /** @param {string} source */
  source(source) {
    if (source === 'test') this.go(this.session.view.scene.number ?? this.last ?? 0)
    else if (source === 'random') this.random()
    else this.session.set({ source: 'own' })
  }

  render() {
    const { view, world } = this.session, { scene } = view
    if (scene.number !== undefined) this.last = scene.number
    for (const input of byId('sources').querySelectorAll('input')) input.checked = input.value === view.source
    byId('of-test').hidden = view.source !== 'test'
    byId('of-random').hidden = view.source !== 'random'
    byId('of-own').hidden = view.source !== 'own'
    byId('number').value = String(scene.number ?? this.last ?? 0)
    const set = (/** @type {string} */ id, /** @type {number} */ value, /** @type {string} */ shown) => {
      byId(id).value = String(value)
      byId(id).setAttribute('aria-valuetext', shown)
      say(byId(`${id}-out`), shown)
    }
    set('objects', view.objects, String(view.objects))
    set('k', view.k, String(view.k))
    set('t', view.t, String(view.t))
    set('noise', view.noise, this.session.tagger.config.kind === 'real' ? view.noise.toFixed(2) : percent(view.noise))
    byId('restore').hidden = !view.hidden.size && !view.removed.size
    say(byId('scene-title'), titleOf(view, world))
  }
}

/** What may be done with a scene of one's own. @param {boolean} things whether there are any to add @param {boolean} draws */
function ownHint(things, draws) {
  const ways = things ? ['drag', 'add', ...(draws ? ['draw'] : [])] : draws ? ['draw'] : []
  if (!ways.length) return ''
  return ` ${capitalised([ways.slice(0, -1).join(', '), ways.at(-1)].filter(Boolean).join(' and '))} as you like.`
}

/** What to call the scene. @param {import('./session.js').View} view @param {any} world */
export function titleOf({ source, scene }, world) {
  if (source === 'test' && scene.number !== undefined) return world.name === 'own' ? `scene ${scene.number}` : `test scene ${scene.number}`
  return source === 'random' ? 'random' : 'yours'
}
