/** Puts the page together: loads a model, and lets every part of the page read one session. */
import { Tagger } from './model/tagger.js'
import { readTensors } from './model/safetensors.js'
import { OwnWorld } from './scenes/own.js'
import { ShapeWorld } from './scenes/shapes.js'
import { SpriteWorld } from './scenes/sprites.js'
import { TetrominoWorld } from './scenes/tetrominoes.js'
import { TextureWorld } from './scenes/textures.js'
import { decode, encode, modelOf } from './ui/address.js'
import { Challenges } from './ui/challenges.js'
import { ClassTable } from './ui/class_table.js'
import { Compare } from './ui/compare.js'
import { Controls } from './ui/controls.js'
import { byId, darkScheme, download, figure, make, reducedMotion, say } from './ui/dom.js'
import { GroupCards } from './ui/group_cards.js'
import { Inside } from './ui/inside.js'
import { Inspector } from './ui/inspector.js'
import { Painter } from './ui/pictures.js'
import { Player } from './ui/player.js'
import { QuizView } from './ui/quiz_view.js'
import { animation, picture } from './ui/save.js'
import { LIVE_ITERATIONS, Session } from './ui/session.js'
import { Stage } from './ui/stage.js'
import { Strip } from './ui/strip.js'
import { isEmpty, statusOf } from './ui/status.js'
import { explain, leadFor, list, STARTS } from './ui/words.js'

/**
 * A line of models.json.
 *
 * @typedef {{
 *   name: string, weights: string, card: string, world: 'shapes' | 'textures' | 'sprites' | 'tetrominoes' | 'own',
 *   objects: number, fewest: number, one_colour: boolean, draws: boolean, background: number | null, scenes: string | null
 * }} Entry
 */

/** The scene that plays on arrival: a test scene that shows it well. */
const ARRIVAL = { shapes: 41, textures: 3, sprites: 33, tetrominoes: 16, own: 0 }
const ARRIVAL_PAUSE = 1100, PAUSE = 600, SETTLED = 250

const tell = (/** @type {string} */ words) => say(byId('status'), words)

/** @param {string} address @returns {Promise<Response>} */
async function ask(address) {
  let answer
  try {
    answer = await fetch(address)
  } catch {
    throw new Error(`${address} cannot be reached: is taggernet explore still running?`)
  }
  if (!answer.ok) throw new Error(`${address} is not there: run taggernet explore again, or copy the page again`)
  return answer
}

/** @param {string} address @returns {Promise<any>} */
async function askJson(address) {
  const answer = await ask(address)
  return answer.json().catch(() => {
    throw new Error(`${address} is damaged: copy it again`)
  })
}

/** @param {Entry} entry @param {Tagger} tagger @param {string} digits */
async function worldFor(entry, tagger, digits) {
  const { shape } = tagger.config
  if (entry.world === 'shapes') return new ShapeWorld(shape[0], entry.objects, entry.fewest)
  if (entry.world === 'sprites') return new SpriteWorld(shape, entry.objects, entry.fewest, entry.one_colour)
  if (entry.world === 'tetrominoes') return new TetrominoWorld(shape, entry.objects)
  const file = entry.world === 'textures' ? digits : entry.scenes
  const tensors = file ? readTensors(await (await ask(file)).arrayBuffer(), file) : null
  if (entry.world !== 'textures') return new OwnWorld(shape, tagger.config, tensors, entry)
  const found = /** @type {NonNullable<typeof tensors>} */ (tensors)
  return new TextureWorld(/** @type {any} */ (found.get('images')).data, /** @type {any} */ (found.get('labels')).data, entry.objects)
}

/** The page for one model. */
class Page {
  /** @param {Entry} entry @param {Tagger} tagger @param {any} world */
  constructor(entry, tagger, world) {
    this.entry = entry
    const session = (this.session = new Session(tagger, world, entry.name))
    this.cards = new GroupCards(session, tell, (element) => this.stage.point(element))
    this.inspector = new Inspector(session, (group) => this.cards.light(group))
    this.stage = new Stage(session, (element) => this.inspector.show(element), tell)
    this.controls = new Controls(session, this.stage, tell)
    this.strip = new Strip(session)
    this.inside = new Inside(session)
    this.classes = new ClassTable(session)
    this.compare = new Compare(session)
    this.challenges = new Challenges(session, tell)
    this.quiz = new QuizView(session)
    this.player = new Player(session, (playing) => {
      say(byId('play'), playing ? 'Stop' : 'Play')
      this.describe()
      if (!playing) this.settleSoon()
    })
    this.painter = this.dressed()
    session.onChange((change) => this.render(change))
    this.buttons()
  }

  /** What is said of the first masks. */
  get start() {
    return STARTS[this.session.tagger.config.start]
  }

  /** Colours for the light or the dark. */
  dressed() {
    const painter = new Painter(this.session.tagger, darkScheme(), this.session.world.range)
    this.inspector.dress(painter)
    this.controls.colours(painter)
    return painter
  }

  buttons() {
    const { session } = this, { signal } = this.stage.controller
    const on = (/** @type {string} */ id, /** @type {() => void} */ act) => byId(id).addEventListener('click', act, { signal })
    on('play', () => (this.player.playing ? this.player.stop() : this.play(PAUSE)))
    on('fresh', () => {
      session.fresh()
      if (!reducedMotion()) this.play(250)
    })
    on('copy', async () => {
      this.remember()
      await navigator.clipboard.writeText(location.href).then(
        () => tell('The link is copied.'), () => tell('Copy the link from the address bar: it is up to date.'))
    })
    on('save-png', async () => download(await picture(session, this.painter), 'taggernet.png'))
    on('save-gif', () => download(animation(session, this.painter), 'taggernet.gif'))
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.painter = this.dressed()
      this.render({ regrouped: true, live: false })
      this.settle()
    }, { signal })
  }

  /** @param {number} pause */
  play(pause) {
    if (this.session.live) this.session.set({ seed: this.session.view.seed + 1 })
    this.player.play(pause)
  }

  /** @param {import('./ui/session.js').Change} change */
  render({ regrouped, live }) {
    const { painter } = this
    this.stage.render(painter)
    this.cards.render(painter)
    this.strip.render(painter, regrouped || !live)
    this.inspector.show(this.stage.cursor.hidden ? null : this.stage.element)
    this.classes.render()
    if (!live) this.inside.render(painter)
    this.controls.render()
    this.figures()
    this.describe()
    this.compare.stop()
    this.settleSoon()
  }

  /** Say what is shown, whatever was said before. */
  describe() {
    const { session, player, stage, challenges } = this
    tell(statusOf(session, { playing: player.playing || player.showing, tool: stage.tool, task: challenges.words }))
  }

  figures() {
    const { session } = this, { view, ami, foregroundAri: ari } = session
    const edited = view.removed.size ? ' with all groups' : ''
    say(byId('ami'), ami === null ? 'no truth here' : `${figure(ami)}${edited}`)
    byId('ami').classList.toggle('small', ami === null || edited !== '')
    byId('ari').closest('div').hidden = session.world.background === null
    say(byId('ari'), ari === null ? '–' : figure(ari))
    say(byId('time'), `${session.milliseconds.toFixed(1)} ms`)
    const last = session.history.length - 1
    const away = [view.hidden.size ? `${view.hidden.size} hidden` : '', view.removed.size ? `${view.removed.size} removed` : ''].filter(Boolean)
    const moment = session.live ? 'live' : view.shown === 0 ? this.start.name : `iteration ${view.shown} of ${last}`
    say(byId('shown-title'), away.join(', ') || moment)
  }

  settleSoon() {
    clearTimeout(this.settling)
    this.settling = setTimeout(() => this.settle(), SETTLED)
  }

  /** What can wait until the visitor pauses, or until nothing plays any more. */
  settle() {
    if (this.player.playing) return
    this.inside.render(this.painter)
    this.compare.render(this.painter)
    this.challenges.check()
    this.quiz.render(this.painter)
    this.remember()
  }

  /** Keep the view in the address. */
  remember() {
    const { session } = this
    const view = session.live && session.view.shown === LIVE_ITERATIONS ? { ...session.view, shown: session.view.t } : session.view
    history.replaceState(null, '', `#${encode(this.entry.name, session.world, view)}`)
  }

  /** @param {string} address what is behind the '#' */
  open(address) {
    const asked = decode(address, this.session.world)
    const arriving = !asked.scene
    const number = Math.min(ARRIVAL[/** @type {keyof typeof ARRIVAL} */ (this.session.world.name)], Math.max(0, this.session.world.count - 1))
    this.session.choose({ ...this.session.defaults(), scene: this.session.world.test(number), ...(asked.t ? { shown: asked.t } : {}), ...asked })
    this.settle()
    if (arriving && !reducedMotion() && !isEmpty(this.session)) this.arrive()
  }

  /** The first scene plays by itself. */
  arrive() {
    const said = [this.start.sentence, this.start.then, '… which tells it what the rest of its shape should look like …', '… so it claims that, too, and lets go of the rest.']
    let arriving = true
    this.session.onChange(() => {
      const { shown, t } = this.session.view
      arriving &&= this.player.showing
      if (arriving && shown < t) tell(said[Math.min(shown, said.length - 1)])
    })
    this.player.play(ARRIVAL_PAUSE)
    tell(said[0])
  }

  close() {
    this.player.stop()
    this.compare.stop()
    clearTimeout(this.settling)
    this.stage.close()
    this.session.listeners = []
  }
}

/** @type {Page | undefined} */
let page

/** @param {Entry} entry @param {string} digits @param {string} address */
async function open(entry, digits, address) {
  page?.close()
  tell('Loading the network …')
  byId('stage').setAttribute('aria-busy', 'true')
  const [card, weights] = await Promise.all([askJson(entry.card), ask(entry.weights).then((answer) => answer.arrayBuffer())])
  const tagger = await Tagger.from(weights, card, { plain: new URLSearchParams(location.search).has('plain') })
  page = new Page(entry, tagger, await worldFor(entry, tagger, digits))
  Object.assign(window, { explorer: page })
  say(byId('lead'), leadFor(page.session.world, page.session.view.t))
  list(tagger.config, page.session.world)
  say(byId('fresh'), page.start.again)
  say(byId('how'), tagger.how === 'wasm' ? 'The network runs in your browser (WebAssembly).' : 'The network runs in your browser in plain JavaScript, as WebAssembly is not available here: many times slower.')
  byId('stage').removeAttribute('aria-busy')
  for (const id of ['play', 'fresh', 'model']) byId(id).disabled = false
  byId('rest').hidden = false
  page.open(address)
}

/** @param {unknown} problem */
function fail(problem) {
  const words = problem instanceof Error ? problem.message : String(problem)
  byId('stage').removeAttribute('aria-busy')
  for (const id of ['status', 'shown-title']) say(byId(id), '')
  byId('alert')?.remove()
  byId('stage').before(make('p', { class: 'alert', id: 'alert', role: 'alert', text: words }))
}

async function begin() {
  explain()
  const { models, digits } = await askJson('models.json')
  /** @type {Entry[]} */
  const entries = models
  const address = location.hash.slice(1)
  const entry = entries.find(({ name }) => name === modelOf(address)) ?? entries[0]
  const choice = byId('model')
  choice.replaceChildren(...entries.map(({ name }) => make('option', { value: name, text: name.split('/').slice(-2).join('/'), title: name })))
  choice.value = entry.name
  choice.addEventListener('change', () => {
    const chosen = entries.find(({ name }) => name === choice.value) ?? entries[0]
    history.replaceState(null, '', `#model=${encodeURIComponent(chosen.name)}`)
    location.reload()
  })
  addEventListener('hashchange', () => {
    const name = modelOf(location.hash.slice(1)) ?? entries[0].name
    if (page && name === page.entry.name) page.open(location.hash.slice(1))
    else location.reload()
  })
  await open(entry, digits, address)
}

begin().catch(fail)
