/**
 * Scenes of textured digits, one in front of the other. The twin of data/textures.py.
 *
 * @typedef {{texture: number, top: number, left: number}} Cut a window of a texture
 * @typedef {Cut & {digit: number, row: number, col: number}} Thing
 */
import { Key } from '../model/rng.js'

export const SIDE = 28
const GRID = 38, MOVE = 2, VISIBLE = 0.9, WINDOWS = GRID - SIDE + 1
const FREQUENCIES = [4, 10, 21, 32, 37].flatMap((down) => [0, 4, 8, 12].map((right) => [down, right]))
const [TEXTURE, ROW, COL, , DIGIT] = [0, 1, 2, 3, 4]

/** The 20 textures, each GRID x GRID in [0, 1]. */
export function textureBank() {
  const phases = Key.of(2016).fold('textures').uniform(FREQUENCIES.length)
  return FREQUENCIES.map(([down, right], index) => {
    const shifted = right + Math.floor(index / 4)
    const wave = Float64Array.from({ length: GRID * GRID }, (_, at) =>
      Math.cos(2 * Math.PI * ((down * Math.floor(at / GRID) + shifted * (at % GRID)) / GRID + phases[index])))
    const low = Math.min(...wave), high = Math.max(...wave)
    return Float32Array.from(wave, (value) => (value - low) / (high - low))
  })
}

export class TextureWorld {
  /**
   * @param {Float32Array} images (n, 28, 28), 0 .. 255
   * @param {Float32Array} labels (n,)
   * @param {number} digits of a test scene
   */
  constructor(images, labels, digits = 2) {
    this.height = this.width = SIDE
    this.images = images
    this.labels = labels
    this.objects = digits
    this.name = 'textures'
    this.count = 1_000
    this.draws = false
    this.noun = 'digit'
    this.background = 1
    /** @type {number[]} */
    this.swatches = []
    this.inks = 1
    this.bank = textureBank()
    this.kinds = Array.from({ length: 10 }, (_, digit) => String(digit))
  }

  size() {
    return { height: SIDE, width: SIDE }
  }

  /** A number of the test set, as data.texture_mnist(..., split="test") has it with these digits. @param {number} number */
  test(number) {
    return { ...this.scene(Key.of(0).fold(`texture-mnist-${this.objects}`, 'test'), this.objects, number), number }
  }

  /** @param {number} objects @param {number} seed */
  random(objects, seed) {
    return this.scene(Key.of(seed).fold(`texture-mnist-${objects}`, 'page'), objects, 0)
  }

  /** @param {Key} key @param {number} objects @param {number} number */
  scene(key, objects, number) {
    const m = this.labels.length, lap = Math.floor(number / m)
    const digits = Array.from({ length: objects }, (_, place) => key.fold(DIGIT, place).fold(lap).permutation(m)[number % m])
    const [back, ...cuts] = this.cuts(key, objects + 1, number)
    const apart = objects > 1 ? MOVE : 0
    // The first digit lies up and left and on top, the last one down and right and below.
    const things = digits.map((digit, place) => {
      const move = objects > 1 ? Math.round(-apart + (2 * apart * place) / (objects - 1)) : 0
      return { digit, row: move, col: move }
    }).reverse().map((thing, layer) => ({ ...thing, ...cuts[layer] }))
    return { things, back, ink: null }
  }

  /** Windows of different textures, the background's first. @param {Key} key @param {number} layers @param {number} number */
  cuts(key, layers, number) {
    /** @type {number[]} */
    const chosen = []
    return Array.from({ length: layers }, (_, layer) => {
      let [texture] = key.fold(TEXTURE, layer).integers(this.bank.length - layer, 1, number)
      for (const taken of [...chosen].sort((a, b) => a - b)) if (texture >= taken) texture += 1
      chosen.push(texture)
      const at = number * layers + layer
      return { texture, top: key.fold(ROW).integers(WINDOWS, 1, at)[0], left: key.fold(COL).integers(WINDOWS, 1, at)[0] }
    })
  }

  /** One more digit in front, with a texture that no other layer of the scene has. @param {string} kind @param {any} scene */
  make(kind, scene) {
    const key = Key.of(scene.things.length).fold('page', kind)
    const same = [...this.labels.keys()].filter((index) => this.labels[index] === Number(kind))
    const taken = [scene.back, ...scene.things].map((layer) => layer.texture)
    const free = this.bank.map((_, texture) => texture).filter((texture) => !taken.includes(texture))
    const [digit, texture] = [same[key.integers(same.length, 1)[0]], free[key.integers(free.length, 1, 1)[0]]]
    const [top, left] = key.integers(WINDOWS, 2, 2)
    return { digit, row: 0, col: 0, texture, top, left }
  }

  /** @param {Thing} thing @param {number} row @param {number} col */
  moved(thing, row, col) {
    const within = (/** @type {number} */ value) => Math.max(-14, Math.min(14, value))
    return { ...thing, row: within(row), col: within(col) }
  }

  /** How opaque a thing is at an element. @param {Thing} thing @param {number} row @param {number} col */
  opacity(thing, row, col) {
    const r = row - thing.row, c = col - thing.col
    return r >= 0 && r < SIDE && c >= 0 && c < SIDE ? this.images[(thing.digit * SIDE + r) * SIDE + c] / 255 : 0
  }

  /** @param {Thing} thing @param {number} row @param {number} col */
  covers(thing, row, col) {
    return this.opacity(thing, row, col) > 0.3
  }

  /** @param {Thing} thing */
  title({ digit }) {
    return `digit ${this.labels[digit]}`
  }

  /** @param {string} kind */
  kindName(kind) {
    return `${kind === '8' ? 'an' : 'a'} ${kind}`
  }

  /** Nothing but the background. @param {any} scene */
  empty({ back }) {
    return { things: [], ink: null, back }
  }

  /** @param {Thing} thing */
  toNumbers({ digit, row, col, ...cut }) {
    return [digit, row, col, ...this.backToNumbers(cut)]
  }

  /** @param {number[]} numbers @returns {Thing | null} */
  fromNumbers([digit, row, col, ...cut]) {
    const found = this.backFromNumbers(cut)
    return digit in this.labels && found ? this.moved({ digit, row, col, ...found }, row, col) : null
  }

  /** @param {Cut} cut */
  backToNumbers({ texture, top, left }) {
    return [texture, top, left]
  }

  /** @param {number[]} numbers @returns {Cut | null} */
  backFromNumbers([texture, top, left]) {
    const inWindow = (/** @type {number} */ place) => place >= 0 && place < WINDOWS
    return texture in this.bank && inWindow(top) && inWindow(left) ? { texture, top, left } : null
  }

  /** x, and the layer (1 is the background) of which more than 0.9 is seen. @param {any} scene */
  paint({ things, back }) {
    const n = SIDE * SIDE, x = new Float32Array(n), truth = new Uint8Array(n)
    const grey = (/** @type {Cut} */ cut, /** @type {number} */ r, /** @type {number} */ c) => this.bank[cut.texture][(cut.top + r) * GRID + cut.left + c]
    for (let at = 0; at < n; at++) {
      const r = Math.floor(at / SIDE), c = at % SIDE
      let seen = [1]
      x[at] = grey(back, r, c)
      for (const thing of things) {
        const opacity = this.opacity(thing, r, c)
        x[at] = opacity * grey(thing, r, c) + (1 - opacity) * x[at]
        seen = [...seen.map((share) => share * (1 - opacity)), opacity]
      }
      truth[at] = seen.findIndex((share) => share > VISIBLE) + 1
    }
    return { x, truth, classes: things.map((/** @type {Thing} */ { digit }) => this.labels[digit]), scored: true }
  }
}
