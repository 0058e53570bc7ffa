/** The controls: where the scene comes from, K, T, noise, and the palette. They show what the session holds. */
import { byId, make, percent, say } from './dom.js'

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
    const { config } = session.tagger
    const textures = session.world.name === 'textures'
    byId('objects').max = textures ? 3 : 5
    say(byId('objects-label'), textures ? 'Digits' : 'Shapes')
    byId('number').max = session.world.count - 1
    byId('noise').max = config.kind === 'binary' ? 0.4 : 0.5
    byId('tools').hidden = !session.world.kinds.length && !session.world.draws
    byId('pens').hidden = !session.world.draws
    say(byId('tools-legend'), textures ? 'Add a digit' : session.world.kinds.length ? 'Add a shape, or draw' : 'Draw')
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
    this.on('clear', 'click', () => {
      session.set({ scene: session.world.kinds.length ? { things: [], ink: null, back: session.view.scene.back } : { things: [], ink: new Uint8Array(session.world.height * session.world.width) }, source: 'own' })
      this.tell('The picture is empty: add shapes or draw.')
    })
    this.on('restore', 'click', () => session.set({ hidden: new Set(), removed: new Set() }))
  }

  /** @param {'k' | 't'} name @param {HTMLInputElement} input */
  number(name, input) {
    const { hidden, removed } = this.session.view
    this.session.set({ [name]: Number(input.value) })
    if (name === 'k' && hidden.size + removed.size) this.tell('Another K makes other groups: all are shown again.')
  }

  palette() {
    const { session } = this
    const byWorld = session.world.name === 'shapes'
    byId('palette').replaceChildren(...session.world.kinds.map((/** @type {string} */ kind) => {
      const label = byWorld ? kind : `a ${kind}`
      return make('button', { class: 'stamp', title: label, 'aria-label': `Add ${label}`, onclick: () => this.add(kind) }, byWorld ? this.stamp(kind) : kind)
    }))
  }

  /** A small picture of a shape. @param {string} kind */
  stamp(kind) {
    const mask = this.session.world.masks.get(kind), space = 'http://www.w3.org/2000/svg'
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
    const made = world.make(kind, view.scene), turn = view.scene.things.length
    const thing = world.moved(made, made.row + [0, -4, 4, -2, 2][turn % 5], made.col + [0, 4, -4, -5, 5][turn % 5])
    this.session.set({ scene: { ...view.scene, things: [...view.scene.things, thing], number: undefined }, source: 'own' })
    this.tell(`${world.title(thing)} added: drag it.`)
  }

  /** @param {number} number */
  go(number) {
    const { count } = this.session.world
    this.session.set({ scene: this.session.world.test((number + count) % count), source: 'test' })
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
    this.session.set({ scene: world.random(view.objects, seed), source: 'random' })
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
    set('noise', view.noise, this.session.tagger.config.kind === 'binary' ? percent(view.noise) : view.noise.toFixed(2))
    byId('restore').hidden = !view.hidden.size && !view.removed.size
    say(byId('scene-title'), titleOf(view, world))
  }
}

/** What to call the scene. @param {import('./session.js').View} view @param {any} world */
export function titleOf({ source, scene }, world) {
  if (source === 'test' && scene.number !== undefined) return world.name === 'own' ? `scene ${scene.number}` : `test scene ${scene.number}`
  return source === 'random' ? 'random' : 'yours'
}
