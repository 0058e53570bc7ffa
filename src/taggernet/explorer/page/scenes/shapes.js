/**
 * Scenes of shapes: those of the test set, random ones, and what the visitor puts together. The twin of data/shapes.py,
 * with shapes that no network was trained on besides.
 *
 * @typedef {{kind: string, row: number, col: number}} Thing
 * @typedef {{things: any[], ink: Uint8Array | null, number?: number, back?: any}} Scene
 * @typedef {{x: Float32Array, truth: Uint8Array | Int32Array | null, classes: number[], scored: boolean}} Painted
 */
import { Key } from '../model/rng.js'

const PICTURES = {
  paper: {
    square: ['#######', '#######', '##...##', '##...##', '##...##', '#######', '#######'],
    'triangle up': ['.....##.....', '....####....', '...######...', '..###..###..', '.###....###.', '############', '############'],
    ring: ['..####..', '.######.', '###..###', '##....##', '##....##', '###..###', '.######.', '..####..'],
    cross: ['..###..', '..###..', '#######', '#######', '#######', '..###..', '..###..'],
    bar: ['##', '##', '##', '##', '##', '##', '##', '##', '##', '##', '##'],
    'letter L': ['###....', '###....', '###....', '###....', '###....', '#######', '#######'],
  },
  small: {
    square: ['####', '####', '####', '####'],
    'triangle up': ['...#...', '..###..', '.#####.', '#######'],
    ring: ['.##.', '#..#', '#..#', '.##.'],
    cross: ['.#.', '###', '.#.'],
    bar: ['#', '#', '#', '#', '#', '#'],
    'letter L': ['##..', '##..', '####', '####'],
  },
}
export const SEEN = ['square', 'triangle up', 'triangle down']
const SMALLEST_PAPER = 16
const [KIND, ROW, COL, COUNT] = [0, 1, 2, 3]

export class ShapeWorld {
  /** @param {number} size side of the canvas @param {number} objects of a test scene, at most @param {number} [fewest] at least */
  constructor(size, objects = 3, fewest = objects) {
    const pictures = PICTURES[size >= SMALLEST_PAPER ? 'paper' : 'small']
    this.height = this.width = size
    this.objects = size >= SMALLEST_PAPER ? objects : 2
    this.fewest = Math.min(fewest, this.objects)
    this.name = 'shapes'
    this.count = 10_000
    this.draws = true
    this.noun = 'shape'
    this.background = null
    /** @type {number[]} there is but ink */
    this.swatches = []
    /** Ink is there or not. */
    this.inks = 1
    /** @type {Map<string, string[]>} */
    this.masks = new Map(Object.entries(pictures))
    this.masks.set('triangle down', [...pictures['triangle up']].reverse())
    this.kinds = [...SEEN, ...[...this.masks.keys()].filter((kind) => !SEEN.includes(kind))]
  }

  /** Height and width of a thing. @param {Thing} thing */
  size({ kind }) {
    const mask = /** @type {string[]} */ (this.masks.get(kind))
    return { height: mask.length, width: mask[0].length }
  }

  /** A number of the test set, the same as data.shapes(..., split="test"). @param {number} number @returns {Scene} */
  test(number) {
    const key = Key.of(0).fold('shapes', 'test'), things = this.drawn(key, this.objects, number)
    const [more] = key.fold(COUNT).integers(this.objects - this.fewest + 1, 1, number)
    return { things: things.slice(0, this.fewest + more), ink: null, number }
  }

  /** @param {number} objects @param {number} seed @returns {Scene} */
  random(objects, seed) {
    return { things: this.drawn(Key.of(seed).fold('shapes', 'valid'), objects, 0), ink: null }
  }

  /** Kind and place of each object of a scene of a stream. @param {Key} key @param {number} objects @param {number} number */
  drawn(key, objects, number) {
    const begin = number * objects
    return key.fold(KIND).integers(SEEN.length, objects, begin).map((chosen, j) => {
      const thing = { kind: SEEN[chosen], row: 0, col: 0 }
      const { height, width } = this.size(thing)
      thing.row = key.fold(ROW).integers(this.height - height + 1, 1, begin + j)[0]
      thing.col = key.fold(COL).integers(this.width - width + 1, 1, begin + j)[0]
      return thing
    })
  }

  /** A thing of this kind, in the middle. @param {string} kind */
  make(kind) {
    const thing = { kind, row: 0, col: 0 }
    const { height, width } = this.size(thing)
    return { ...thing, row: (this.height - height) >> 1, col: (this.width - width) >> 1 }
  }

  /** The thing at another place, kept on the canvas. @param {Thing} thing @param {number} row @param {number} col */
  moved(thing, row, col) {
    const { height, width } = this.size(thing)
    const within = (/** @type {number} */ value, /** @type {number} */ most) => Math.max(0, Math.min(most, value))
    return { ...thing, row: within(row, this.height - height), col: within(col, this.width - width) }
  }

  /** Whether a thing covers an element. @param {Thing} thing @param {number} row @param {number} col */
  covers(thing, row, col) {
    return this.masks.get(thing.kind)?.[row - thing.row]?.[col - thing.col] === '#'
  }

  /** What to call a thing. @param {Thing} thing */
  title({ kind }) {
    return kind
  }

  /** What to call a kind. @param {string} kind */
  kindName(kind) {
    return kind
  }

  /** A small picture of a kind, '#' where it is. @param {string} kind @returns {string[]} */
  stamp(kind) {
    return this.masks.get(kind) ?? []
  }

  /** The scene with some elements drawn or erased, all of it a drawing now; null where nothing changes. @param {Scene} scene @param {Float32Array} x @param {number[]} elements @param {boolean} pen */
  inked({ ink: before, back }, x, elements, pen) {
    const ink = Uint8Array.from(before ?? x), value = Number(pen)
    if (before && elements.every((at) => ink[at] === value)) return null
    for (const at of elements) ink[at] = value
    return { things: [], ink, back }
  }

  /** @returns {Scene} */
  empty() {
    return { things: [], ink: null }
  }

  /** @param {Thing} thing */
  toNumbers({ kind, row, col }) {
    return [this.kinds.indexOf(kind), row, col]
  }

  /** @param {number[]} numbers */
  fromNumbers([kind, row, col]) {
    return kind in this.kinds ? this.moved({ kind: this.kinds[kind], row: 0, col: 0 }, row || 0, col || 0) : null
  }

  /** @returns {number[]} */
  backToNumbers() {
    return []
  }

  backFromNumbers() {
    return undefined
  }

  /** x, and which thing (1 ...) an element belongs to that one thing alone covers. @param {Scene} scene @returns {Painted} */
  paint({ things, ink }) {
    const x = new Float32Array(this.height * this.width), truth = new Uint8Array(x.length), cover = new Uint8Array(x.length)
    things.forEach((thing, index) => {
      const { height, width } = this.size(thing)
      for (let r = thing.row; r < thing.row + height; r++) {
        for (let c = thing.col; c < thing.col + width; c++) {
          if (!this.covers(thing, r, c)) continue
          const at = r * this.width + c
          x[at] = 1
          cover[at] += 1
          truth[at] = cover[at] === 1 ? index + 1 : 0
        }
      }
    })
    ink?.forEach((drawn, at) => drawn && (x[at] = 1))
    const scored = !ink && truth.some((label) => label > 0)
    return { x, truth: ink ? null : truth, classes: [], scored }
  }
}
