/** Small challenges on shapes: a scene to begin with, a task, and a test whether it is done. */
import { SEEN } from '../scenes/shapes.js'
import { labels } from '../scenes/ami.js'
import { byId, make, say } from './dom.js'

/** @typedef {import('./session.js').Session} Session */

const STORED = 'taggernet-challenges'
const MOSTLY = 0.8
const at = (/** @type {string} */ kind, /** @type {number} */ row, /** @type {number} */ col) => ({ kind, row, col })

/** Whether every thing has a group of its own in the last state. @param {Session} session */
export function separated({ painted, history, view }) {
  const last = history[history.length - 1], found = labels(last.m, last.groups)
  const owners = view.scene.things.map((/** @type {any} */ _, /** @type {number} */ index) => {
    const counts = new Map()
    let total = 0
    painted.truth?.forEach((/** @type {number} */ label, /** @type {number} */ e) => {
      if (label !== index + 1) return
      total += 1
      counts.set(found[e], (counts.get(found[e]) ?? 0) + 1)
    })
    const [owner, most] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [-1, 0]
    return total && most / total >= MOSTLY ? owner : -1
  })
  return owners.length > 0 && !owners.includes(-1) && new Set(owners).size === owners.length
}

const kindsOf = (/** @type {Session} */ session) => session.view.scene.things.map((/** @type {any} */ thing) => thing.kind)

/** @type {{id: string, name: string, task: string, goal: string, done: string, view: any, solved: (session: Session) => boolean}[]} */
export const CHALLENGES = [
  {
    id: 'overlap', name: 'Exactly on top',
    task: 'Two squares lie exactly on top of each other, so there is nothing to see of the second. Pull one away until each shape has a group of its own.',
    goal: 'Your task: pull the two squares apart until each shape has a group of its own.',
    done: 'A few pixels were enough: each group completes its square behind the other.',
    view: { scene: { things: [at('square', 5, 4), at('square', 5, 4), at('triangle down', 12, 7)], ink: null }, noise: 0, k: 4, t: 5 },
    solved: (session) => kindsOf(session).filter((/** @type {string} */ kind) => kind === 'square').length >= 2 && separated(session),
  },
  {
    id: 'noise', name: 'One pixel in five is wrong',
    task: 'Every fifth pixel is flipped. Drag the shapes, or try new starts, until AMI reaches 0.90 all the same.',
    goal: 'Your task: four shapes and an AMI of 0.90, with every fifth pixel flipped. Drag the shapes, or try new starts.',
    done: 'That is how it was trained: it never saw a clean picture.',
    view: { scene: { things: [at('square', 1, 2), at('triangle up', 11, 6), at('triangle down', 2, 8), at('square', 9, 11)], ink: null }, noise: 0.2, k: 4, t: 5, seed: 2 },
    solved: (session) => session.view.noise >= 0.2 && session.view.scene.things.length >= 4 && (session.ami ?? 0) >= 0.9,
  },
  {
    id: 'unseen', name: 'A shape it never saw',
    task: 'It was trained on squares and triangles. Here it takes a cross for part of a triangle. Find a place for the cross where it becomes a group of its own.',
    goal: 'Your task: find a place for the cross where each of the three shapes has a group of its own.',
    done: 'It never saw a cross, yet what belongs together stays together, if it is not hidden too well.',
    view: { scene: { things: [at('square', 2, 10), at('triangle up', 11, 2), at('cross', 12, 6)], ink: null }, noise: 0, k: 4, t: 5 },
    solved: (session) => kindsOf(session).some((/** @type {string} */ kind) => !SEEN.includes(kind)) && kindsOf(session).length >= 3 && separated(session),
  },
  {
    id: 'five', name: 'Five shapes, four groups',
    task: 'Here are five shapes, but only four groups: two shapes have to share one. Raise K, and try other starts, until each has a group of its own.',
    goal: 'Your task: five shapes, each with a group of its own. Raise K, and try other starts.',
    done: 'K can be changed after training: the same network serves any number of groups.',
    view: { scene: { things: [at('square', 0, 0), at('triangle up', 1, 8), at('square', 12, 1), at('triangle down', 11, 8), at('square', 6, 5)], ink: null }, noise: 0, k: 4, t: 5 },
    solved: (session) => kindsOf(session).length >= 5 && separated(session),
  },
]

/** Whether the view is still that of the task. @param {typeof CHALLENGES[number]} challenge @param {import('./session.js').View} view */
function isUntouched(challenge, view) {
  return Object.entries(conditionsOf(challenge)).every(([name, value]) => view[/** @type {keyof typeof view} */ (name)] === value)
}

const conditionsOf = (/** @type {typeof CHALLENGES[number]} */ { view }) => ({ seed: 0, ...view })

/** @returns {Set<string>} */
function stored() {
  try {
    return new Set(JSON.parse(localStorage.getItem(STORED) ?? '[]'))
  } catch {
    return new Set()
  }
}

export class Challenges {
  /** @param {Session} session @param {(said: string) => void} tell */
  constructor(session, tell) {
    this.session = session
    this.tell = tell
    this.solved = stored()
    /** @type {typeof CHALLENGES[number] | undefined} the one begun last */
    this.begun = undefined
    /** Whether it was done since it was begun. */
    this.done = false
    const fits = session.world.name === 'shapes' && session.world.height === 20
    byId('challenges-panel').hidden = !fits
    this.cards = fits ? CHALLENGES.map((challenge) => this.card(challenge)) : []
    byId('challenges').replaceChildren(...this.cards.map(({ element }) => element))
    this.update()
  }

  /** @param {typeof CHALLENGES[number]} challenge */
  card(challenge) {
    const text = make('p'), mark = make('span', { class: 'mark' })
    const button = make('button', { text: 'Try it', 'aria-label': `Try: ${challenge.name}`, onclick: () => this.begin(challenge) })
    return { challenge, text, mark, button, element: make('article', { class: 'challenge' }, make('h3', {}, challenge.name, ' ', mark), text, button) }
  }

  /** @param {typeof CHALLENGES[number]} challenge */
  begin(challenge) {
    this.begun = challenge
    this.done = false
    this.session.challenge(conditionsOf(challenge))
    byId('stage').scrollIntoView({ block: 'start' })
    byId('input-board').querySelector('button')?.focus({ preventScroll: true })
    this.update()
  }

  /** The challenge that the scene belongs to: a drawing or a scene chosen since then belongs to none. */
  get current() {
    const { before, view } = this.session
    return before && !view.scene.ink ? this.begun : undefined
  }

  /** What is to be done, or that it is; null where there is nothing to say. */
  get words() {
    const { current } = this
    if (!current) return null
    if (!this.done) return isUntouched(current, this.session.view) ? current.task : current.goal
    return current.solved(this.session) ? `Done! ${current.done}` : null
  }

  /** Look whether the challenge that was begun is done. */
  check() {
    const challenge = this.current
    if (!challenge || this.done || !challenge.solved(this.session)) return
    this.done = true
    this.solved.add(challenge.id)
    try {
      localStorage.setItem(STORED, JSON.stringify([...this.solved]))
    } catch {
      // private windows may refuse; the mark then lasts until the page is closed
    }
    this.tell(`Done! ${challenge.done}`)
    this.update()
  }

  update() {
    for (const { challenge, text, mark, button, element } of this.cards) {
      const done = this.solved.has(challenge.id)
      say(text, done ? `${challenge.task} ${challenge.done}` : challenge.task)
      say(mark, done ? '✓ done' : '')
      say(button, done ? 'Again' : 'Try it')
      element.classList.toggle('done', done)
    }
  }
}
