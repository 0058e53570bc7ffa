/** The scene as a picture (PNG) or as an animation of its iterations (GIF). */
import { encodeGif } from './gif.js'
import { css, pixels } from './pictures.js'
import { STARTS } from './words.js'

/** @typedef {import('./session.js').Session} Session @typedef {import('./pictures.js').Painter} Painter */

const LARGE = 320, SMALL = 100, GAP = 16, LINE = 30
const FONT = '15px system-ui, sans-serif'

/** @param {number} width @param {number} height @param {Painter} painter */
function sheet(width, height, painter) {
  const canvas = Object.assign(document.createElement('canvas'), { width, height })
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { willReadFrequently: true }))
  context.fillStyle = css(painter.dark ? [32, 32, 40] : [244, 244, 247])
  context.fillRect(0, 0, width, height)
  context.imageSmoothingEnabled = false
  context.font = FONT
  context.textBaseline = 'middle'
  return { canvas, context }
}

/** A picture enlarged. @param {CanvasRenderingContext2D} context @param {Session} session @param {import('./pictures.js').Picture} picture @param {number} x @param {number} y @param {number} side */
function place(context, { world: { height, width } }, picture, x, y, side) {
  const small = Object.assign(document.createElement('canvas'), { width, height })
  small.getContext('2d')?.putImageData(new ImageData(pixels(picture, height * width), width, height), 0, 0)
  const scale = side / Math.max(height, width)
  context.drawImage(small, x, y, width * scale, height * scale)
}

/** @param {CanvasRenderingContext2D} context @param {Painter} painter @param {string} words @param {number} x @param {number} y */
function write(context, painter, words, x, y) {
  context.fillStyle = css(painter.ink)
  context.fillText(words, x, y)
}

/** Scene, groups, and z, m, m z of each group. @param {Session} session @param {Painter} painter @returns {Promise<Blob>} */
export function picture(session, painter) {
  const { state, view, seen, live } = session
  const width = Math.max(2 * LARGE + 3 * GAP, view.k * (SMALL + GAP) + GAP + 40)
  const { canvas, context } = sheet(width, LARGE + 2 * LINE + 3 * (SMALL + 6) + 2 * GAP, painter)
  write(context, painter, 'What it sees', GAP, LINE / 2 + 4)
  write(context, painter, `Its groups, K = ${view.k}${live ? '' : `, iteration ${view.shown}`}`, LARGE + 2 * GAP, LINE / 2 + 4)
  place(context, session, painter.input(seen), GAP, LINE, LARGE)
  place(context, session, painter.groups(state, view.hidden), LARGE + 2 * GAP, LINE, LARGE)
  const rows = /** @type {const} */ (['z', 'm', 'mz'])
  rows.forEach((part, row) => {
    const y = LARGE + LINE + GAP + row * (SMALL + 6)
    write(context, painter, part === 'mz' ? 'm·z' : part, GAP, y + SMALL / 2)
    for (let k = 0; k < view.k; k++) place(context, session, painter[part](state, k), 56 + k * (SMALL + GAP), y, SMALL)
  })
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error('this browser cannot write PNG'))), 'image/png'))
}

/** Every iteration in turn. @param {Session} session @param {Painter} painter @returns {Blob} */
export function animation(session, painter) {
  const { history, view, seen, live } = session
  const width = 2 * LARGE + 3 * GAP, height = LARGE + LINE + GAP
  const frames = history.map((_, i) => {
    const { context } = sheet(width, height, painter)
    write(context, painter, 'What it sees', GAP, LINE / 2)
    write(context, painter, live ? `frame ${i}` : i ? `iteration ${i}` : STARTS[session.tagger.config.start].name, LARGE + 2 * GAP, LINE / 2)
    place(context, session, painter.input(seen), GAP, LINE, LARGE)
    place(context, session, painter.groups(session.stateAt(i), view.hidden), LARGE + 2 * GAP, LINE, LARGE)
    return { pixels: context.getImageData(0, 0, width, height).data, milliseconds: i === history.length - 1 ? 2000 : 700 }
  })
  return new Blob([encodeGif(frames, width, height)], { type: 'image/gif' })
}
