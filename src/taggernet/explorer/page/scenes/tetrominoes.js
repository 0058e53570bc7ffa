/** Three pieces of four squares each, in six colours, none over another. The twin of data/tetrominoes.py. */
import { Key } from '../model/rng.js'
import { ObjectWorld } from './objects.js'

const CANVAS = 7, TRIES = 96
const [KIND, ROW, COL, COLOUR] = [0, 1, 2, 3]
const COLOURS = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
const LETTERS = { I: '####', O: '##/##', T: '###/.#.', S: '.##/##.', Z: '##./.##', J: '#../###', L: '..#/###' }
/** What no network was trained on: other numbers of squares, and white. */
const UNSEEN = { dot: '#', corner: '##/#.', plus: '.#./###/.#.', cup: '#.#/###' }
const WHITE = [1, 1, 1]

/** A quarter turn against the clock. @param {string[]} piece */
const turned = (piece) => [...piece[0]].map((_, col) => piece.map((line) => line[col]).join('')).reverse()

/** The 19 pieces by letter and quarter turns, e.g. 'T1'. */
export function pieces() {
  /** @type {Map<string, string[]>} */
  const found = new Map()
  for (const [letter, picture] of Object.entries(LETTERS)) {
    let piece = picture.split('/')
    const earlier = new Set()
    for (let turns = 0; turns < 4; turns++, piece = turned(piece)) {
      if (!earlier.has(piece.join('/'))) found.set(`${letter}${turns}`, piece)
      earlier.add(piece.join('/'))
    }
  }
  return found
}

export class TetrominoWorld extends ObjectWorld {
  /** @param {number[]} shape @param {number} objects of a test scene */
  constructor(shape, objects = 3) {
    super('tetrominoes', shape, 3)
    this.objects = objects
    this.count = 10_000
    this.background = 0
    this.noun = 'piece'
    this.pieces = pieces()
    this.drawnKinds = [...this.pieces.keys()]
    for (const [kind, picture] of Object.entries(UNSEEN)) this.pieces.set(kind, picture.split('/'))
    this.every = [...this.pieces.keys()]
    this.kinds = [...Object.keys(LETTERS).map((letter) => `${letter}0`), ...Object.keys(UNSEEN)]
    this.colours = [...COLOURS, WHITE]
    this.swatches = this.colours.map((_, index) => index)
  }

  /** @param {Pick<import('./objects.js').Thing, 'kind'>} thing */
  cut({ kind }) {
    const piece = /** @type {string[]} */ (this.pieces.get(kind)), side = this.height / CANVAS
    const height = piece.length * side, width = piece[0].length * side
    const covered = Uint8Array.from({ length: height * width }, (_, at) =>
      Number(piece[Math.floor(at / width / side)][Math.floor((at % width) / side)] === '#'))
    return { height, width, covered }
  }

  /** A letter, whichever way it is turned. @param {string} kind */
  kindName(kind) {
    return kind.length === 2 ? kind[0] : kind
  }

  /** @param {string} kind */
  stamp(kind) {
    return /** @type {string[]} */ (this.pieces.get(kind))
  }

  /** A number of the test set, the same as data.tetrominoes(..., split="test"). @param {number} number */
  test(number) {
    return { ...this.drawn(Key.of(0).fold('tetrominoes', 'test'), this.objects, number), number }
  }

  /** @param {number} objects @param {number} seed */
  random(objects, seed) {
    return this.drawn(Key.of(seed).fold('tetrominoes', 'page'), objects, 0)
  }

  /** @param {Key} key @param {number} objects @param {number} number @returns {import('./objects.js').Scene} */
  drawn(key, objects, number) {
    const pick = (/** @type {number} */ stream, /** @type {number} */ high, /** @type {number} */ at) => key.fold(stream).integers(high, 1, at)[0]
    const kept = { scale: 0, angle: 0 }
    /** @type {import('./objects.js').Thing[]} */
    let things = []
    for (let j = 0; j < objects; j++) {
      const colour = pick(COLOUR, COLOURS.length, number * objects + j)
      for (let turn = 0; turn < TRIES && things.length === j; turn++) {
        const at = (number * objects + j) * TRIES + turn, kind = this.drawnKinds[pick(KIND, this.drawnKinds.length, at)]
        const { height, width } = this.stencil({ kind, ...kept })
        const thing = { kind, ...kept, colour, row: pick(ROW, this.height + 1 - height, at), col: pick(COL, this.width + 1 - width, at) }
        if (!things.some((other) => this.overlap(other, thing))) things.push(thing)
      }
      if (things.length === j) { // no place was found: three squares in a row, whatever came before
        things = Array.from({ length: objects }, (_, i) => ({ kind: 'O0', ...kept, row: 0, col: (2 * i * this.height) / CANVAS, colour: pick(COLOUR, COLOURS.length, number * objects + i) }))
        break
      }
    }
    return { things, ink: null, back: null }
  }

  /** @param {import('./objects.js').Thing} one @param {import('./objects.js').Thing} other */
  overlap(one, other) {
    const { height, width, covered } = this.stencil(one)
    for (let row = 0; row < height; row++) {
      for (let col = 0; col < width; col++) if (covered[row * width + col] && this.covers(other, one.row + row, one.col + col)) return true
    }
    return false
  }
}
