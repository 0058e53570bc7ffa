/**
 * Scenes of a file, x (n, H, W) or (n, H, W, C), and optionally groups and classes; or, without one, an empty canvas.
 * Shapes and a pen go on top of them.
 *
 * @typedef {import('../model/safetensors.js').Tensor} Tensor
 */
import { ObjectWorld } from './objects.js'

/** Colours on offer, at most: an address has a letter for each. */
const MOST_COLOURS = 24
const GREYS = [1, 0.75, 0.5, 0.25, 0]
/** Of the numbers of a large file, about as many are looked at. */
const LOOKED_AT = 100_000

export class OwnWorld extends ObjectWorld {
  /**
   * @param {number[]} shape
   * @param {{kind: string, channels: number}} config
   * @param {Map<string, Tensor> | null} file
   * @param {{draws?: boolean, background?: number | null}} [options] draws: false where a picture cannot be drawn, as its
   *   elements are shuffled
   */
  constructor(shape, { kind, channels }, file, { draws = true, background = null } = {}) {
    super('own', shape, channels)
    this.file = file
    this.kind = kind
    this.count = file ? /** @type {Tensor} */ (file.get('x')).shape[0] : 0
    this.draws = draws
    this.background = background
    this.range = kind === 'real' && file ? rangeOf(/** @type {Tensor} */ (file.get('x')).data) : [0, 1]
    this.colours = coloursFor(kind, channels, this.range)
    this.nothing = file ? commonest(/** @type {Tensor} */ (file.get('x')).data, kind, channels) : firstOf(kind, channels, this.range[0])
    const isGround = (/** @type {number} */ index) => Number(String(this.colours[index]) === String(this.nothing))
    this.swatches = this.colours.map((_, index) => index).sort((a, b) => isGround(a) - isGround(b)) // what would not be seen comes last
    this.kinds = draws ? this.every.filter((one) => this.fits(one)) : []
  }

  /** Whether a shape has any size on this canvas, and not too much. @param {string} kind */
  fits(kind) {
    const { height, width } = this.stencil({ kind, scale: 3, angle: 0 })
    return height > 1 && height <= this.height && width <= this.width
  }

  /** @param {number} number @returns {import('./objects.js').Scene} */
  test(number) {
    return { things: [], ink: null, ...(this.count ? { back: number, number } : { back: null }) }
  }

  /** A scene picked at random. @param {number} _ @param {number} seed */
  random(_, seed) {
    return this.test(this.count ? (seed * 7919) % this.count : 0)
  }

  /** @param {string} name @param {number} number */
  row(name, number) {
    const tensor = this.file?.get(name)
    if (!tensor) return null
    const size = tensor.data.length / this.count
    return tensor.data.subarray(number * size, (number + 1) * size)
  }

  /** @param {number | null} back the number of a scene */
  ground(back) {
    if (back === null) return super.ground(back)
    const groups = this.row('groups', back)
    return {
      x: Float32Array.from(this.row('x', back) ?? []),
      truth: groups && Int32Array.from(groups),
      classes: [...(this.row('classes', back) ?? [])].filter((label) => label >= 0),
    }
  }

  /** @param {number} index */
  colourName(index) {
    return this.kind === 'categorical' ? `state ${index}` : super.colourName(index)
  }

  bare() {
    return this.nothing
  }

  empty() {
    return { things: [], ink: null, back: null }
  }

  get backs() {
    return this.count
  }
}

/** Least and most of some numbers. @param {Float32Array} values @returns {[number, number]} */
function rangeOf(values) {
  let low = Infinity, high = -Infinity
  for (const value of values) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return [low, high]
}

/** What a pen may have, C numbers each. @param {string} kind @param {number} channels @param {number[]} range */
function coloursFor(kind, channels, [low, high]) {
  const one = (/** @type {number} */ index) => Array.from({ length: channels }, (_, c) => (c === index ? high : low))
  if (kind === 'categorical') return Array.from({ length: Math.min(channels, MOST_COLOURS) }, (_, state) => one(state))
  if (channels === 1) return kind === 'binary' ? [[1]] : GREYS.map((share) => [low + share * (high - low)])
  if (channels > 3) return [new Array(channels).fill(high), ...Array.from({ length: channels }, (_, c) => one(c))].slice(0, MOST_COLOURS)
  // every corner but the darkest, the purest colours first
  const bits = Array.from({ length: 2 ** channels - 1 }, (_, index) => index + 1)
  const count = (/** @type {number} */ code) => code.toString(2).replaceAll('0', '').length
  return bits.sort((a, b) => count(a) - count(b) || a - b).map((code) => Array.from({ length: channels }, (_, c) => (code & (1 << c) ? high : low)))
}

/** @param {string} kind @param {number} channels @param {number} low */
const firstOf = (kind, channels, low) => Array.from({ length: channels }, (_, c) => (kind === 'categorical' && c === 0 ? 1 : low))

/** The commonest state, or the median of each channel. @param {Float32Array} x @param {string} kind @param {number} channels */
function commonest(x, kind, channels) {
  const step = Math.max(1, Math.floor(x.length / channels / LOOKED_AT))
  const of = Array.from({ length: channels }, (_, c) => {
    const values = []
    for (let at = c; at < x.length; at += step * channels) values.push(x[at])
    return Float32Array.from(values).sort()
  })
  if (kind !== 'categorical') return of.map((values) => values[values.length >> 1])
  const counts = of.map((values) => values.reduce((sum, value) => sum + value, 0)), most = counts.indexOf(Math.max(...counts))
  return counts.map((_, c) => Number(c === most))
}
