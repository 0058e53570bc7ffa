/**
 * z, m and what follows from them as pictures: one pixel per position, enlarged by the page.
 * K groups · P positions · C channels, side by side · N = P C elements
 *
 * Binary pictures of one channel are ink on paper, and ink has the colour of its group. All others have colours of their
 * own: greys, red, green and blue, one colour for each state, or one for each channel, which then add up.
 *
 * @typedef {[number, number, number]} Colour
 * @typedef {import('../model/tagger.js').State} State
 * @typedef {(position: number) => Colour} Picture
 */
import { hsv } from '../scenes/sprites.js'

/** Okabe and Ito's colours, which people with any common form of colour blindness tell apart. */
export const GROUP_COLOURS = ['#E69F00', '#0072B2', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#666666']
const DARK_COLOURS = ['#F0AE1F', '#3D9FDB', '#16BE90', '#E08FBE', '#7CCBF7', '#F0763A', '#F0E442', '#9A9AA2']
const LIGHT = { paper: '#FFFFFF', ink: '#1B1B22', faint: '#C9C9D1' }
const DARK = { paper: '#17171D', ink: '#F1F1F4', faint: '#4A4A55' }
const BELOW = '#2F7FC1', ABOVE = '#D55E00'
/** Share of a turn between the hues of two states: the golden angle keeps any number of them apart. */
const GOLDEN = 0.381966
const LUMINANCE = [0.299, 0.587, 0.114]

/** @param {string} hex @returns {Colour} */
export const rgb = (hex) => /** @type {Colour} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)))

/** @param {Colour} colour */
export const css = (colour) => `rgb(${colour.map(Math.round).join(' ')})`

/** @param {number} share */
const clip = (share) => Math.max(0, Math.min(1, share))

/** @param {Colour} from @param {Colour} to @param {number} share @returns {Colour} */
export function mix(from, to, share) {
  const s = clip(share)
  return [from[0] + (to[0] - from[0]) * s, from[1] + (to[1] - from[1]) * s, from[2] + (to[2] - from[2]) * s]
}

/** The colours of channels, which add up to white, or of states. @param {string} kind @param {number} channels @returns {Colour[]} */
export function channelColours(kind, channels) {
  if (kind === 'categorical') {
    return Array.from({ length: channels }, (_, c) => /** @type {Colour} */ (hsv((0.6 + c * GOLDEN) % 1, c % 2 ? 0.45 : 0.75, c % 2 ? 0.95 : 0.72).map((part) => 255 * part)))
  }
  if (channels === 1) return [[255, 255, 255]]
  const hues = Array.from({ length: channels }, (_, c) => hsv(c / channels, 1, 1))
  const sums = [0, 1, 2].map((part) => hues.reduce((sum, hue) => sum + hue[part], 0))
  return hues.map((hue) => /** @type {Colour} */ (hue.map((part, i) => (255 * part) / sums[i])))
}

export class Painter {
  /**
   * @param {import('../model/tagger.js').Tagger} tagger
   * @param {boolean} dark
   * @param {number[]} range of the values of a picture, in the user's units
   */
  constructor(tagger, dark, range = [0, 1]) {
    const { kind, channels } = tagger.config
    this.tagger = tagger
    this.channels = channels
    this.binary = kind === 'binary'
    this.ofInk = this.binary && channels === 1
    this.dark = dark
    this.range = range
    const theme = dark ? DARK : LIGHT
    this.paper = rgb(theme.paper)
    this.ink = rgb(theme.ink)
    this.faint = rgb(theme.faint)
    this.names = dark ? DARK_COLOURS : GROUP_COLOURS
    this.colours = this.names.map(rgb)
    this.basis = channelColours(kind, channels)
  }

  /** The colour of C numbers in the user's units. @param {(channel: number) => number} value @returns {Colour} */
  mixed(value) {
    const [low, high] = this.range
    /** @type {Colour} */
    const out = [0, 0, 0]
    for (let c = 0; c < this.channels; c++) {
      const share = clip((value(c) - low) / (high - low || 1))
      for (let i = 0; i < 3; i++) out[i] += share * this.basis[c][i]
    }
    return out
  }

  /** The colour that a group expects at a position. @param {State} state @param {number} k @param {number} p @returns {Colour} */
  expected({ z, m, groups }, k, p) {
    const { tagger, channels } = this, first = p * channels, begin = (k * (m.length / groups) + p) * channels
    return this.mixed((c) => z[begin + c] * tagger.scaleOf(first + c) + tagger.offsetOf(first + c))
  }

  /** How much ink a group expects at a position; 1 where pictures are not made of ink. @param {State} state @param {number} k @param {number} p */
  inkOf({ z, m, groups }, k, p) {
    if (!this.binary) return 1
    const begin = (k * (m.length / groups) + p) * this.channels
    let most = 0
    for (let c = 0; c < this.channels; c++) most = Math.max(most, z[begin + c])
    return most
  }

  /** @param {ArrayLike<number>} x in the user's units @returns {Picture} */
  input(x) {
    return (p) => (this.ofInk ? mix(this.paper, this.ink, x[p]) : this.mixed((c) => x[p * this.channels + c]))
  }

  /** All groups together, each in its colour, some of them hidden. @param {State} state @param {Set<number>} hidden @returns {Picture} */
  groups(state, hidden) {
    const { m, groups } = state, n = m.length / groups
    return (p) => {
      /** @type {Colour} */
      const out = [...this.paper]
      for (let k = 0; k < groups; k++) {
        if (hidden.has(k)) continue
        const colour = this.colours[k % this.colours.length], share = m[k * n + p] * clip(this.inkOf(state, k, p))
        let light = 1
        if (!this.binary) {
          const expected = this.expected(state, k, p)
          light = 0.5 + (0.5 * expected.reduce((sum, part, i) => sum + LUMINANCE[i] * part, 0)) / 255
        }
        for (let i = 0; i < 3; i++) out[i] += share * (colour[i] * light - this.paper[i])
      }
      return out
    }
  }

  /** What a group would look like in full. @param {State} state @param {number} k @returns {Picture} */
  z(state, k) {
    const n = state.m.length / state.groups
    return (p) => (this.ofInk ? mix(this.paper, this.colours[k], state.z[k * n + p]) : this.expected(state, k, p))
  }

  /** Where a group is; grey where no group puts ink. @param {State} state @param {number} k @returns {Picture} */
  m(state, k) {
    const { m, groups } = state, n = m.length / groups
    return (p) => {
      let ink = 0
      for (let g = 0; g < groups; g++) ink += m[g * n + p] * this.inkOf(state, g, p)
      const share = m[k * n + p]
      return mix(mix(this.paper, this.faint, share), mix(this.paper, this.colours[k], share), ink > 0.5 ? 1 : ink * 0.6)
    }
  }

  /** What a group adds to the picture: colour to black where pictures are made of lights, else on paper. @param {State} state @param {number} k @returns {Picture} */
  mz(state, k) {
    const { z, m, groups } = state, n = m.length / groups, from = this.binary ? /** @type {Colour} */ ([0, 0, 0]) : this.paper
    return (p) => {
      const at = k * n + p
      return this.ofInk ? mix(this.paper, this.colours[k], m[at] * z[at]) : mix(from, this.expected(state, k, p), m[at])
    }
  }

  /** A share from 0 to 1 in a group's colour. @param {Float32Array} values (K, P) @param {number} groups @param {number} k @returns {Picture} */
  share(values, groups, k) {
    const n = values.length / groups
    return (p) => mix(this.paper, this.colours[k], values[k * n + p])
  }

  /** One channel: blue below 0, vermillion above. Several: the colour to go towards, on grey. @param {Float32Array} values (K, N) @param {number} groups @param {number} k @param {number} most @returns {Picture} */
  signed(values, groups, k, most) {
    const begin = (k * values.length) / groups, { channels, basis } = this
    const strength = (/** @type {number} */ value) => Math.sqrt(Math.abs(value) / (most || 1))
    if (channels === 1) return (p) => mix(this.paper, rgb(values[begin + p] < 0 ? BELOW : ABOVE), strength(values[begin + p]))
    return (p) => {
      /** @type {Colour} */
      const out = [127.5, 127.5, 127.5]
      for (let c = 0; c < channels; c++) {
        const value = values[begin + p * channels + c], half = (Math.sign(value) * strength(value)) / 2
        for (let i = 0; i < 3; i++) out[i] += half * basis[c][i]
      }
      return out
    }
  }
}

/**
 * Pixels (4 bytes each) of a picture.
 *
 * @param {Picture} picture
 * @param {number} n
 */
export function pixels(picture, n) {
  const out = new Uint8ClampedArray(4 * n)
  for (let e = 0; e < n; e++) {
    const colour = picture(e)
    out[4 * e] = colour[0]
    out[4 * e + 1] = colour[1]
    out[4 * e + 2] = colour[2]
    out[4 * e + 3] = 255
  }
  return out
}

/** @param {HTMLCanvasElement} canvas @param {Picture} picture @param {number} height @param {number} width */
export function paint(canvas, picture, height, width) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'))
  context.putImageData(new ImageData(pixels(picture, height * width), width, height), 0, 0)
}
