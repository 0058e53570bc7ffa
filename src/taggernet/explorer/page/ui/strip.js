/** The iterations as small pictures, which pressing shows in the large one; beside them the truth, where it is known. */
import { labels } from '../scenes/ami.js'
import { byId, make } from './dom.js'
import { paint } from './pictures.js'
import { STARTS } from './words.js'

export class Strip {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    this.box = byId('strip')
    this.box.replaceChildren()
    /** @type {{button: any, canvas: any, label: any}[]} */
    this.frames = []
    const { width, height } = session.world
    this.truth = make('canvas', { width, height, role: 'img', 'aria-label': 'The true groups' })
    this.truthBox = make('figure', { class: 'truth' }, this.truth, make('figcaption', { text: 'truth' }))
  }

  /** What the state at a place of the history is called. @param {number} i */
  nameOf(i) {
    if (this.session.live) return i === 0 ? 'before' : `+${i}`
    return i === 0 ? 'start' : String(i)
  }

  /** @param {import('./pictures.js').Painter} painter @param {boolean} repaint */
  render(painter, repaint) {
    const { history, view, world } = this.session
    if (this.frames.length !== history.length) {
      this.frames = history.map((_, i) => {
        const canvas = make('canvas', { width: world.width, height: world.height, 'aria-hidden': 'true' }), label = make('span')
        return { canvas, label, button: make('button', { class: 'frame', onclick: () => this.session.set({ shown: i }) }, canvas, label) }
      })
      this.box.replaceChildren(...this.frames.map(({ button }) => button), this.truthBox)
      repaint = true
    }
    this.frames.forEach(({ button, canvas, label }, i) => {
      label.textContent = this.nameOf(i)
      button.setAttribute('aria-label', this.session.live ? `Frame, ${this.nameOf(i)}` : i ? `Iteration ${i}` : `The ${STARTS[this.session.tagger.config.start].name}`)
      button.setAttribute('aria-pressed', String(i === view.shown))
      if (repaint) paint(canvas, painter.groups(this.session.stateAt(i), view.hidden), world.height, world.width)
    })
    const { truth, scored } = this.session.painted
    this.truthBox.hidden = !scored || !truth
    if (!repaint || !scored || !truth) return
    const last = history[history.length - 1], owner = matched(truth, labels(last.m, last.groups))
    paint(this.truth, (p) => (truth[p] ? painter.colours[owner.get(truth[p]) ?? -1] ?? painter.ink : painter.paper), world.height, world.width)
  }
}

/** Which group each true one is like: the pair with most in common first, no group twice. @param {ArrayLike<number>} truth @param {Uint8Array} found @returns {Map<number, number>} */
export function matched(truth, found) {
  /** @type {Map<string, {label: number, group: number, count: number}>} */
  const pairs = new Map()
  for (let at = 0; at < truth.length; at++) {
    if (!truth[at]) continue
    const name = `${truth[at]} ${found[at]}`, pair = pairs.get(name) ?? { label: truth[at], group: found[at], count: 0 }
    pair.count += 1
    pairs.set(name, pair)
  }
  const owner = new Map(), taken = new Set()
  for (const { label, group } of [...pairs.values()].sort((a, b) => b.count - a.count)) {
    if (owner.has(label) || taken.has(group)) continue
    owner.set(label, group)
    taken.add(group)
  }
  return owner
}
