/** The classes of the whole scene after every iteration, for models that have them. */
import { byId, make, percent, say } from './dom.js'

/** Sum of the groups' shares, (C,). @param {Float32Array} shares @param {number} classes */
export function classProbabilities(shares, classes) {
  const total = new Float32Array(classes)
  shares.forEach((share, at) => (total[at % classes] += share))
  return total
}

export class ClassTable {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    this.noun = session.world.name === 'textures' ? 'digit' : 'class'
    byId('classes-panel').hidden = !session.tagger.config.classes
    say(byId('classes-heading'), this.noun === 'digit' ? 'Which digits are there?' : 'Which classes are there?')
  }

  render() {
    const { tagger, history, painted, view } = this.session
    const { classes } = tagger.config
    if (!classes) return
    const truth = new Set(painted.classes)
    const heads = Array.from({ length: classes }, (_, c) => make('th', { scope: 'col', class: truth.has(c) ? 'true' : false, text: c }))
    const rows = history.flatMap((state, i) => {
      const shares = tagger.classShares(state)
      if (!shares) return []
      const cells = [...classProbabilities(shares, classes)].map((share, c) => {
        const cell = make('td', { class: truth.has(c) ? 'true' : false, title: percent(share, 1) }, make('span', { text: share >= 0.095 ? Math.round(100 * share) : '' }))
        cell.style.setProperty('--share', String(Math.min(1, 2 * share)))
        return cell
      })
      return [make('tr', { class: i === view.shown ? 'shown' : false }, make('th', { scope: 'row', text: this.session.live ? `+${i}` : i }), ...cells)]
    })
    const told = painted.classes.length ? `In the scene: ${[...painted.classes].reverse().join(' and ')} (outlined). ` : ''
    byId('classes').replaceChildren(
      make('table', { class: 'class-table' }, make('caption', { text: `${told}Share of each ${this.noun} in percent; together they make 100.` }),
        make('thead', {}, make('tr', {}, make('th', { scope: 'col', text: 'iteration' }), ...heads)), make('tbody', {}, ...rows)))
  }
}
