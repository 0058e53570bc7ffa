/** One iteration from the inside: what goes into the mapping, group by group, and what comes out. */
import { asFed } from '../model/tagger.js'
import { byId, dot, make, say } from './dom.js'
import { paint } from './pictures.js'

const COLUMNS = [
  ['z', 'what it expects'], ['m', 'where it is'], ['δz', 'how z should change'], ['L(m)', 'who explains it best'],
  ['z', 'its new guess'], ['m', 'its new place'],
]

/** What is said of masks that are not the network's own. @type {Record<string, string | undefined>} */
const POSTERIOR = {
  posterior: ' The new m is multiplied with how well the new z explains the scene.',
  'posterior-result': ' The other views show m times how well z explains the scene.',
}

export class Inside {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    this.box = byId('inside')
    this.about = byId('inside-about')
    this.box.replaceChildren()
    /** @type {any[][]} */
    this.rows = []
    /** @type {import('./pictures.js').Painter | undefined} */
    this.painter = undefined
  }

  build(/** @type {import('./pictures.js').Painter} */ painter) {
    const { view, world } = this.session
    const head = make('div', { class: 'inside-row inside-head', 'aria-hidden': 'true' }, make('span'), ...COLUMNS.slice(0, 4).map(title),
      make('span', { class: 'arrow' }), ...COLUMNS.slice(4).map(title))
    this.rows = Array.from({ length: view.k }, (_, k) => COLUMNS.map(([name, what], i) => make('canvas', {
      width: world.width, height: world.height, role: 'img', 'aria-label': `Group ${k + 1}, ${i < 4 ? 'in' : 'out'}: ${name}, ${what}`,
    })))
    this.box.replaceChildren(head, ...this.rows.map((canvases, k) => make('div', { class: 'inside-row' }, dot(painter.names[k]),
      ...canvases.slice(0, 4), make('span', { class: 'arrow', 'aria-hidden': 'true', text: '→' }), ...canvases.slice(4))))
  }

  /** @param {import('./pictures.js').Painter} painter */
  render(painter) {
    const { session } = this, { view, world, history, tagger } = session
    if (this.rows.length !== view.k || painter !== this.painter) {
      this.painter = painter
      this.build(painter)
    }
    const to = Math.max(1, view.shown), before = history[to - 1], after = history[to]
    if (!after) return
    say(this.about, `${session.live ? 'The last frame' : `Iteration ${to} of ${history.length - 1}`}: the same network looks at each group${tagger.config.group_attention ? ', and the groups talk to one another' : ' on its own'}. It sees four pictures of it, and answers with a better z and m. ` +
      `${tagger.config.channels === 1 ? 'δz says where z should rise (orange) or fall (blue)' : 'δz says towards which colour z should go (grey: stay)'}; L(m) says how well this group explains each pixel, compared with the others.` +
      (tagger.tied ? ` The new m is multiplied with the one at the start${tagger.config.tie < 1 ? ', less and less from one iteration to the next' : ''}.` : '') + (POSTERIOR[tagger.config.masks] ?? ''))
    const { deltaZ, ratio } = tagger.evidence(tagger.inputs(session.seen), before)
    const most = deltaZ.reduce((high, value) => Math.max(high, Math.abs(value)), 0)
    this.rows.forEach((canvases, k) => {
      const pictures = [
        painter.z(before, k), painter.m(asFed(before), k), painter.signed(deltaZ, view.k, k, most), painter.share(ratio, view.k, k),
        painter.z(after, k), painter.m(asFed(after), k),
      ]
      canvases.forEach((canvas, i) => paint(canvas, pictures[i], world.height, world.width))
    })
  }
}

/** @param {string[]} column */
function title([name, what]) {
  return make('span', { class: 'column' }, make('b', { text: name }), make('small', { text: what }))
}
