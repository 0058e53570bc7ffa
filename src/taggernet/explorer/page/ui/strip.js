/** The iterations as small pictures; pressing one shows it. */
import { byId, make } from './dom.js'
import { paint } from './pictures.js'

export class Strip {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    this.box = byId('strip')
    this.box.replaceChildren()
    /** @type {{button: any, canvas: any, label: any}[]} */
    this.frames = []
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
      this.box.replaceChildren(...this.frames.map(({ button }) => button))
      repaint = true
    }
    this.frames.forEach(({ button, canvas, label }, i) => {
      label.textContent = this.nameOf(i)
      button.setAttribute('aria-label', this.session.live ? `Frame, ${this.nameOf(i)}` : i ? `Iteration ${i}` : 'The random start')
      button.setAttribute('aria-pressed', String(i === view.shown))
      if (repaint) paint(canvas, painter.groups(history[i], view.hidden), world.height, world.width)
    })
  }
}
