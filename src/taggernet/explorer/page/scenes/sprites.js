/** Coloured squares, ellipses and hearts over one another, on grey. The twin of data/sprites.py. */
import { Key } from '../model/rng.js'
import { ANGLES, ObjectWorld, SCALES } from './objects.js'

const SEEN = ['square', 'ellipse', 'heart']
const HUES = 96, LEVELS = 8, GREYS = 256
const [KIND, SCALE, ANGLE, ROW, COL, COUNT, COLOUR, GREY] = [0, 1, 2, 3, 4, 5, 6, 7]
const byte = (/** @type {number} */ value) => Math.fround(value / 255)

/** A number rounded, halves to the even one, as numpy does. @param {number} value */
function rounded(value) {
  const near = Math.round(value)
  return near - value === 0.5 && near % 2 ? near - 1 : near
}

/** Red, green and blue from 0 to 1, as Python's colorsys. @param {number} hue @param {number} saturation @param {number} value */
export function hsv(hue, saturation, value) {
  const sector = Math.floor(hue * 6), f = hue * 6 - sector
  const p = value * (1 - saturation), q = value * (1 - saturation * f), t = value * (1 - saturation * (1 - f))
  return [[value, t, p], [q, value, p], [p, value, t], [p, q, value], [t, p, value], [value, p, q]][sector % 6]
}

/** All colours of the data set. */
export function spriteColours() {
  const levels = Array.from({ length: LEVELS }, (_, i) => 0.5 + i * (0.5 / (LEVELS - 1)))
  return Array.from({ length: HUES }, (_, hue) => levels.flatMap((saturation) => levels.map((value) =>
    hsv(hue / HUES, saturation, value).map((part) => byte(rounded(part * 255)))))).flat()
}

const strongest = (/** @type {number} */ hue) => (hue * LEVELS + LEVELS - 2) * LEVELS + LEVELS - 2

export class SpriteWorld extends ObjectWorld {
  /**
   * @param {number[]} shape
   * @param {number} objects of a test scene, at most
   * @param {number} fewest at least
   * @param {boolean} oneColour for all objects of a scene
   */
  constructor(shape, objects = 5, fewest = 2, oneColour = false) {
    super('sprites', shape, 3)
    this.objects = objects
    this.fewest = fewest
    this.oneColour = oneColour
    this.count = 10_000
    this.background = 0
    this.colours = spriteColours()
    this.swatches = [0, 8, 16, 32, 48, 60, 72, 84].map(strongest)
  }

  /** A number of the test set, the same as data.sprites(..., split="test"). @param {number} number */
  test(number) {
    const key = Key.of(0).fold('sprites', 'test')
    const [more] = key.fold(COUNT).integers(this.objects - this.fewest + 1, 1, number)
    const scene = this.drawn(key, this.objects, number)
    return { ...scene, things: scene.things.slice(0, this.fewest + more), number }
  }

  /** @param {number} objects @param {number} seed */
  random(objects, seed) {
    return this.drawn(Key.of(seed).fold('sprites', 'page'), objects, 0)
  }

  /** @param {Key} key @param {number} objects @param {number} number @returns {import('./objects.js').Scene} */
  drawn(key, objects, number) {
    const begin = number * objects
    const pick = (/** @type {number} */ stream, /** @type {number} */ high, /** @type {number} */ at) => key.fold(stream).integers(high, 1, at)[0]
    const things = Array.from({ length: objects }, (_, j) => {
      const at = begin + j
      const thing = {
        kind: SEEN[pick(KIND, SEEN.length, at)], scale: pick(SCALE, SCALES, at), angle: pick(ANGLE, ANGLES, at), row: 0, col: 0,
        colour: pick(COLOUR, this.colours.length, this.oneColour ? number : at),
      }
      const { height, width } = this.stencil(thing)
      return { ...thing, row: pick(ROW, this.height + 1 - height, at), col: pick(COL, this.width + 1 - width, at) }
    })
    return { things, ink: null, back: pick(GREY, GREYS, number) }
  }

  /** @param {number | null} back the grey */
  bare(back) {
    return new Array(3).fill(byte(back ?? GREYS / 2))
  }

  get backs() {
    return GREYS
  }
}
