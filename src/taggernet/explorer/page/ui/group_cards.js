/** A card per group: z, m and m z, and the two ways to take it away. */
import { byId, dot, make, say } from './dom.js'
import { paint } from './pictures.js'
import { STARTS } from './words.js'

/** @typedef {import('./session.js').Session} Session */

const PARTS = [
  { name: 'z', what: 'z: what it expects, in full' },
  { name: 'm', what: 'm: where it is' },
  { name: 'mz', what: 'm · z: what it adds' },
]

export class GroupCards {
  /** @param {Session} session @param {(said: string) => void} tell @param {(element: number | null) => void} point */
  constructor(session, tell, point) {
    this.session = session
    this.tell = tell
    this.point = point
    this.box = byId('groups')
    this.box.replaceChildren()
    /** @type {any[]} */
    this.cards = []
    /** @type {import('./pictures.js').Painter | undefined} */
    this.painter = undefined
  }

  /** @param {number} k @param {import('./pictures.js').Painter} painter */
  card(k, painter) {
    const { height, width } = this.session.world
    const canvases = PARTS.map(({ what }) => make('canvas', {
      width, height, role: 'img', 'aria-label': `Group ${k + 1}, ${what}`,
      onpointermove: (/** @type {PointerEvent} */ event) => this.hover(event),
      onpointerleave: () => this.point(null),
    }))
    const hide = make('button', { class: 'small hide', 'aria-pressed': 'false', 'aria-label': `Hide group ${k + 1}`, text: 'Hide', onclick: () => this.hide(k) })
    const remove = make('button', { class: 'small remove', 'aria-pressed': 'false', 'aria-label': `Remove group ${k + 1}`, text: 'Remove', onclick: () => this.remove(k) })
    const note = make('p', { class: 'note' })
    const bars = make('div', { class: 'class-bars', 'aria-hidden': 'true' })
    const element = make('article', { class: 'card', 'aria-label': `Group ${k + 1}` },
      make('header', {}, dot(painter.names[k]), make('h3', { text: `Group ${k + 1}` }), hide, remove),
      make('div', { class: 'parts' }, ...canvases.map((canvas, i) =>
        make('figure', {}, canvas, make('figcaption', { text: PARTS[i].name === 'mz' ? 'm · z' : PARTS[i].name })))),
      bars, note)
    return { element, canvases, hide, remove, note, bars }
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const { height, width } = this.session.world
    const box = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect()
    const row = Math.min(height - 1, Math.floor(((event.clientY - box.top) / box.height) * height))
    const col = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width))
    this.point(Math.max(0, row) * width + Math.max(0, col))
  }

  /** @param {number} k */
  hide(k) {
    this.session.hide(k)
    if (!this.session.view.hidden.has(k)) this.tell(`Group ${k + 1} is shown again.`)
  }

  /** @param {number} k */
  remove(k) {
    if (!this.session.remove(k)) this.tell('One group has to stay: bring another one back first.')
    else if (!this.session.view.removed.has(k)) this.tell(`Group ${k + 1} is back.`)
  }

  /** Light the card of the group that owns an element. @param {number | null} group */
  light(group) {
    this.cards.forEach(({ element }, k) => element.classList.toggle('lit', k === group))
  }

  /** @param {import('./pictures.js').Painter} painter */
  render(painter) {
    const { session } = this, { view, world, state } = session
    if (painter !== this.painter || this.cards.length !== view.k) {
      this.painter = painter
      this.cards = Array.from({ length: view.k }, (_, k) => this.card(k, painter))
      this.box.replaceChildren(...this.cards.map(({ element }) => element))
      this.box.dataset.groups = String(view.k)
    }
    const shares = session.tagger.classShares(session.history[view.shown])
    this.cards.forEach((card, k) => {
      paint(card.canvases[0], painter.z(state, k), world.height, world.width)
      paint(card.canvases[1], painter.m(state, k), world.height, world.width)
      paint(card.canvases[2], painter.mz(state, k), world.height, world.width)
      const hidden = view.hidden.has(k), removed = view.removed.has(k)
      card.element.classList.toggle('hidden-group', hidden)
      card.element.classList.toggle('removed-group', removed)
      card.hide.setAttribute('aria-pressed', String(hidden))
      card.remove.setAttribute('aria-pressed', String(removed))
      say(card.hide, hidden ? 'Show' : 'Hide')
      say(card.remove, removed ? 'Restore' : 'Remove')
      say(card.note, this.noteOf(k))
      if (shares) this.classBars(card.bars, shares, k, painter)
    })
  }

  /** @param {number} k */
  noteOf(k) {
    const { view, state, tagger } = this.session
    if (view.removed.has(k)) return 'Removed: the others fill in.'
    if (view.hidden.has(k)) return 'Hidden: nothing else changed.'
    const n = state.m.length / state.groups
    let share = 0
    for (let p = 0; p < n; p++) share += state.m[k * n + p] * (this.painter?.inkOf(state, k, p) ?? 1)
    const count = Math.round(share)
    if (view.shown === 0) return STARTS[tagger.config.start].note
    return count < 2 ? 'Spare: it explains nothing here.' : `Explains about ${count} pixels.`
  }

  /** @param {any} box @param {Float32Array} shares @param {number} k @param {import('./pictures.js').Painter} painter */
  classBars(box, shares, k, painter) {
    const { classes } = this.session.tagger.config
    if (box.children.length !== classes) {
      box.replaceChildren(...Array.from({ length: classes }, (_, c) => make('span', {}, make('i'), make('b', { text: String(c) }))))
    }
    for (let c = 0; c < classes; c++) {
      const bar = box.children[c].firstChild
      bar.style.height = `${Math.max(2, 100 * Math.min(1, 2 * shares[k * classes + c]))}%`
      bar.style.backgroundColor = painter.names[k]
    }
  }
}
