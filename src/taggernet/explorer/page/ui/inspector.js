/** One element: how much of it each group claims (m), and what each expects there (z). */
import { byId, dot, make, say } from './dom.js'

/** @typedef {import('./session.js').Session} Session */

export class Inspector {
  /** @param {Session} session @param {(group: number | null) => void} light */
  constructor(session, light) {
    this.session = session
    this.light = light
    this.box = byId('inspector')
    this.title = make('p', { class: 'inspector-title' })
    this.rows = make('div', { class: 'bars' })
    this.box.replaceChildren(this.title, this.rows)
    /** @type {string[]} the groups' colours */
    this.names = []
    /** @type {string[]} those of the rows that were made */
    this.colours = []
    /** @type {any[]} */
    this.made = []
    this.show(null)
  }

  /** @param {number | null} element */
  show(element) {
    const { world, state, seen, view } = this.session
    this.box.classList.toggle('idle', element === null)
    if (element === null) {
      say(this.title, 'Point at a pixel or tap it, or focus the right picture and use the arrow keys, to see who claims it.')
      this.light(null)
    } else {
      const value = seen[element]
      const what = this.session.tagger.config.kind === 'binary' ? (value > 0.5 ? 'ink' : 'paper') : `x = ${value.toFixed(2)}`
      say(this.title, `Row ${Math.floor(element / world.width) + 1}, column ${(element % world.width) + 1}: ${what}`)
    }
    this.fill(element ?? 0, state, view.k)
    if (element !== null) this.light(this.owner(element, state))
  }

  /** @param {number} element @param {import('../model/tagger.js').State} state */
  owner(element, state) {
    const n = state.m.length / state.groups
    return Array.from({ length: state.groups }, (_, k) => k).reduce((best, k) => (state.m[k * n + element] > state.m[best * n + element] ? k : best))
  }

  /** @param {number} element @param {import('../model/tagger.js').State} state @param {number} groups */
  fill(element, state, groups) {
    const { names } = this
    if (this.made.length !== groups || this.colours !== names) {
      this.colours = names
      this.made = Array.from({ length: groups }, (_, k) => {
        const bar = make('i'), m = make('span', { class: 'value' }), z = make('span', { class: 'value' })
        bar.style.backgroundColor = names[k] ?? '#888'
        return { row: make('div', { class: 'bar-row' }, dot(names[k] ?? '#888'), make('span', { class: 'track' }, bar), m, z), bar, m, z }
      })
      const head = make('div', { class: 'bar-row head' }, make('span'), make('span', { text: 'm, the share of each group' }), make('span', { class: 'value', text: 'm' }), make('span', { class: 'value', text: 'z' }))
      this.rows.replaceChildren(head, ...this.made.map(({ row }) => row))
    }
    const n = state.m.length / state.groups, best = this.owner(element, state)
    this.made.forEach(({ row, bar, m, z }, k) => {
      const share = state.m[k * n + element]
      bar.style.width = `${100 * share}%`
      say(m, share.toFixed(2))
      say(z, state.z[k * n + element].toFixed(2))
      row.classList.toggle('owner', k === best)
    })
  }
}
