/** One position: how much of it each group claims (m), and what each expects there (z). */
import { byId, dot, make, say, swatch } from './dom.js'
import { css } from './pictures.js'

/** @typedef {import('./session.js').Session} Session */

const MOST_NUMBERS = 4

export class Inspector {
  /** @param {Session} session @param {(group: number | null) => void} light */
  constructor(session, light) {
    this.session = session
    this.light = light
    this.box = byId('inspector')
    this.title = make('span')
    this.seen = swatch()
    this.seen.hidden = true
    this.rows = make('div', { class: 'bars' })
    this.box.replaceChildren(make('p', { class: 'inspector-title' }, this.title, ' ', this.seen), this.rows)
    /** @type {import('./pictures.js').Painter | undefined} */
    this.painter = undefined
    /** @type {import('./pictures.js').Painter | undefined} the one of the rows that were made */
    this.dressed = undefined
    /** @type {any[]} */
    this.made = []
  }

  /** @param {import('./pictures.js').Painter} painter */
  dress(painter) {
    this.painter = painter
    this.show(null)
  }

  /** @param {number | null} position */
  show(position) {
    const { world, state, seen, view, tagger: { config } } = this.session
    this.box.classList.toggle('idle', position === null)
    this.seen.hidden = position === null || config.channels === 1
    if (position === null) {
      say(this.title, 'Point at a pixel or tap it to see whose it is, or use arrow keys in the right picture.')
      this.light(null)
    } else {
      const values = seen.subarray(position * config.channels, (position + 1) * config.channels)
      say(this.title, `Row ${Math.floor(position / world.width) + 1}, column ${(position % world.width) + 1}: ${inWords(values, config.kind)}`)
      if (this.painter) this.seen.style.backgroundColor = css(this.painter.mixed((c) => values[c]))
    }
    this.fill(position ?? 0, state, view.k)
    if (position !== null) this.light(this.owner(position, state))
  }

  /** @param {number} position @param {import('../model/tagger.js').State} state */
  owner(position, state) {
    const n = state.m.length / state.groups
    return Array.from({ length: state.groups }, (_, k) => k).reduce((best, k) => (state.m[k * n + position] > state.m[best * n + position] ? k : best))
  }

  /** @param {number} groups @param {import('./pictures.js').Painter} painter */
  build(groups, painter) {
    this.dressed = painter
    this.made = Array.from({ length: groups }, (_, k) => {
      const bar = make('i'), m = make('span', { class: 'value' }), z = painter.channels === 1 ? make('span', { class: 'value' }) : swatch()
      bar.style.backgroundColor = painter.names[k]
      return { row: make('div', { class: 'bar-row' }, dot(painter.names[k]), make('span', { class: 'track' }, bar), m, z), bar, m, z }
    })
    const head = make('div', { class: 'bar-row head' }, make('span'), make('span', { text: 'm, the share of each group' }), make('span', { class: 'value', text: 'm' }), make('span', { class: 'value', text: 'z' }))
    this.rows.replaceChildren(head, ...this.made.map(({ row }) => row))
  }

  /** @param {number} position @param {import('../model/tagger.js').State} state @param {number} groups */
  fill(position, state, groups) {
    const { painter } = this
    if (!painter) return
    if (this.made.length !== groups || this.dressed !== painter) this.build(groups, painter)
    const { tagger } = this.session, { channels, kind } = tagger.config
    const n = state.m.length / state.groups, best = this.owner(position, state)
    this.made.forEach(({ row, bar, m, z }, k) => {
      const share = state.m[k * n + position]
      bar.style.width = `${100 * share}%`
      say(m, share.toFixed(2))
      const values = Array.from({ length: channels }, (_, c) => {
        const element = position * channels + c
        return state.z[(k * n + position) * channels + c] * tagger.scaleOf(element) + tagger.offsetOf(element)
      })
      if (channels === 1) say(z, values[0].toFixed(2))
      else {
        z.style.backgroundColor = css(painter.expected(state, k, position))
        z.title = `z: ${inWords(values, kind)}`
        z.setAttribute('aria-label', z.title)
      }
      row.classList.toggle('owner', k === best)
    })
  }
}

/** What C numbers say. @param {ArrayLike<number>} values @param {string} kind */
function inWords(values, kind) {
  const all = Array.from(values)
  if (kind === 'categorical') {
    const most = Math.max(...all)
    return `state ${all.indexOf(most)}${most < 0.995 ? ` (${Math.round(100 * most)} %)` : ''}`
  }
  if (all.length === 1) return kind === 'binary' ? (all[0] > 0.5 ? 'ink' : 'paper') : `x = ${all[0].toFixed(2)}`
  return `${all.slice(0, MOST_NUMBERS).map((value) => value.toFixed(2)).join(', ')}${all.length > MOST_NUMBERS ? ' …' : ''}`
}
