/** The same scene with fewer or more groups. Computed when the visitor pauses. */
import { adjustedMutualInformation, labels } from '../scenes/ami.js'
import { byId, make, say } from './dom.js'
import { paint } from './pictures.js'

export const COMPARED = [2, 3, 4, 6]

export class Compare {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    const { width, height } = session.world
    this.cells = COMPARED.map((k) => {
      const canvas = make('canvas', { width, height, 'aria-hidden': 'true' }), score = make('small')
      const button = make('button', { class: 'compare-cell', 'aria-label': `Use ${k} groups`, onclick: () => session.set({ k }) },
        canvas, make('b', { text: `K = ${k}` }), score)
      return { k, canvas, score, button }
    })
    byId('compare').replaceChildren(...this.cells.map(({ button }) => button))
  }

  /** @param {import('./pictures.js').Painter} painter */
  render(painter) {
    const { tagger, seen, painted, view, world } = this.session
    for (const { k, canvas, score, button } of this.cells) {
      const history = tagger.group(seen, k, view.t, view.seed), last = history[history.length - 1]
      paint(canvas, painter.groups(last, new Set()), world.height, world.width)
      const ami = painted.scored && painted.truth ? adjustedMutualInformation(painted.truth, labels(last.m, k)) : null
      say(score, ami === null ? '' : `AMI ${ami.toFixed(2)}`)
      button.setAttribute('aria-pressed', String(k === view.k))
    }
  }
}
