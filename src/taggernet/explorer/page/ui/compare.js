/** The same scene with fewer or more groups. Computed when the visitor pauses. */
import { adjustedMutualInformation, labels } from '../scenes/ami.js'
import { byId, figure, make, say } from './dom.js'
import { paint } from './pictures.js'

export const COMPARED = [2, 3, 4, 6]

export class Compare {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    /** Counts what was asked for: an earlier one ends when a later one begins. */
    this.turn = 0
    say(byId('compare-about'), `The same scene and the same network, which usually has ${session.tagger.card.groups} groups. Press one to use it above.`)
    const { width, height } = session.world
    this.cells = COMPARED.map((k) => {
      const canvas = make('canvas', { width, height, 'aria-hidden': 'true' }), score = make('small')
      const button = make('button', { class: 'compare-cell', 'aria-label': `Use ${k} groups`, onclick: () => session.set({ k }) },
        canvas, make('b', { text: `K = ${k}` }), score)
      return { k, canvas, score, button }
    })
    byId('compare').replaceChildren(...this.cells.map(({ button }) => button))
  }

  /** One number of groups after the other, so that a large model does not hold up the visitor. @param {import('./pictures.js').Painter} painter */
  async render(painter) {
    const turn = (this.turn += 1)
    const { tagger, seen, painted, view, world } = this.session
    for (const { k, button } of this.cells) button.setAttribute('aria-pressed', String(k === view.k))
    for (const { k, canvas, score } of this.cells) {
      const history = tagger.group(seen, k, view.t, view.seed), last = history[history.length - 1]
      paint(canvas, painter.groups(last, new Set()), world.height, world.width)
      const ami = painted.scored && painted.truth ? adjustedMutualInformation(painted.truth, labels(last.m, k)) : null
      say(score, ami === null ? '' : `AMI ${figure(ami)}`)
      await new Promise((go) => setTimeout(go))
      if (turn !== this.turn) return
    }
  }

  /** What is still to be computed is no longer wanted. */
  stop() {
    this.turn += 1
  }
}
