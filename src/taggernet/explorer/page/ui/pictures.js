/**
 * z, m and what follows from them as pictures: one pixel per element, enlarged by the page.
 * K groups · N elements
 *
 * @typedef {[number, number, number]} Colour
 * @typedef {{paper: Colour, ink: Colour, faint: Colour}} Theme
 * @typedef {import('../model/tagger.js').State} State
 * @typedef {(element: number) => Colour} Picture
 */

/** Okabe and Ito's colours, which people with any common form of colour blindness tell apart. */
export const GROUP_COLOURS = ['#E69F00', '#0072B2', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#666666']
const DARK_COLOURS = ['#F0AE1F', '#3D9FDB', '#16BE90', '#E08FBE', '#7CCBF7', '#F0763A', '#F0E442', '#9A9AA2']
const LIGHT = { paper: '#FFFFFF', ink: '#1B1B22', faint: '#C9C9D1' }
const DARK = { paper: '#17171D', ink: '#F1F1F4', faint: '#4A4A55' }
const BELOW = '#2F7FC1', ABOVE = '#D55E00'

/** @param {string} hex @returns {Colour} */
export const rgb = (hex) => /** @type {Colour} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)))

/** @param {number} share */
const clip = (share) => Math.max(0, Math.min(1, share))

/** @param {Colour} from @param {Colour} to @param {number} share @returns {Colour} */
export function mix(from, to, share) {
  const s = clip(share)
  return [from[0] + (to[0] - from[0]) * s, from[1] + (to[1] - from[1]) * s, from[2] + (to[2] - from[2]) * s]
}

export class Painter {
  /**
   * @param {'binary' | 'real'} kind
   * @param {boolean} dark
   * @param {[number, number]} range of the values of a real picture, in the model's units
   */
  constructor(kind, dark, range = [0, 1]) {
    this.kind = kind
    this.dark = dark
    this.range = range
    const theme = dark ? DARK : LIGHT
    this.paper = rgb(theme.paper)
    this.ink = rgb(theme.ink)
    this.faint = rgb(theme.faint)
    this.names = dark ? DARK_COLOURS : GROUP_COLOURS
    this.colours = this.names.map(rgb)
  }

  /** @param {number} value @returns {Colour} from black to white over the range */
  grey(value) {
    const [low, high] = this.range
    return mix([0, 0, 0], [255, 255, 255], (value - low) / (high - low || 1))
  }

  /** @param {ArrayLike<number>} x @returns {Picture} */
  input(x) {
    return (e) => (this.kind === 'binary' ? mix(this.paper, this.ink, x[e]) : this.grey(x[e]))
  }

  /** All groups together, each in its colour, some of them hidden. @param {State} state @param {Set<number>} hidden @returns {Picture} */
  groups({ z, m, groups }, hidden) {
    const n = m.length / groups, [low, high] = this.range
    return (e) => {
      /** @type {Colour} */
      const out = [...this.paper]
      for (let k = 0; k < groups; k++) {
        if (hidden.has(k)) continue
        const at = k * n + e, colour = this.colours[k % this.colours.length]
        const light = this.kind === 'binary' ? 1 : 0.5 + 0.5 * clip((z[at] - low) / (high - low || 1))
        const share = this.kind === 'binary' ? m[at] * clip(z[at]) : m[at]
        for (let i = 0; i < 3; i++) out[i] += share * (colour[i] * light - this.paper[i])
      }
      return out
    }
  }

  /** What a group would look like in full. @param {State} state @param {number} k @returns {Picture} */
  z({ z, m, groups }, k) {
    const n = m.length / groups
    return (e) => (this.kind === 'binary' ? mix(this.paper, this.colours[k], z[k * n + e]) : this.grey(z[k * n + e]))
  }

  /** Where a group is; grey where no group puts ink. @param {State} state @param {number} k @returns {Picture} */
  m({ z, m, groups }, k) {
    const n = m.length / groups
    return (e) => {
      let ink = this.kind === 'binary' ? 0 : 1
      if (this.kind === 'binary') for (let at = e; at < m.length; at += n) ink += m[at] * z[at]
      const share = m[k * n + e]
      return mix(mix(this.paper, this.faint, share), mix(this.paper, this.colours[k], share), ink > 0.5 ? 1 : ink * 0.6)
    }
  }

  /** What a group adds to the picture. @param {State} state @param {number} k @returns {Picture} */
  mz({ z, m, groups }, k) {
    const n = m.length / groups
    return (e) => {
      const at = k * n + e
      return this.kind === 'binary' ? mix(this.paper, this.colours[k], m[at] * z[at]) : mix(this.paper, this.grey(z[at]), m[at])
    }
  }

  /** A share from 0 to 1 in a group's colour. @param {Float32Array} values (K, N) @param {number} groups @param {number} k @returns {Picture} */
  share(values, groups, k) {
    const n = values.length / groups
    return (e) => mix(this.paper, this.colours[k], values[k * n + e])
  }

  /** Blue below 0, vermillion above. @param {Float32Array} values (K, N) @param {number} groups @param {number} k @param {number} most @returns {Picture} */
  signed(values, groups, k, most) {
    const n = values.length / groups
    return (e) => {
      const value = values[k * n + e] / (most || 1)
      return mix(this.paper, rgb(value < 0 ? BELOW : ABOVE), Math.sqrt(Math.abs(value)))
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
