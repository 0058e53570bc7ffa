/**
 * Scenes of opaque objects in colour on a ground, each object over the ones before it: what all pictures have in common
 * that a visitor puts together from coloured shapes and a pen.
 * P positions · C channels, side by side
 *
 * @typedef {{kind: string, row: number, col: number, colour: number, scale: number, angle: number}} Thing
 * @typedef {{things: Thing[], ink: Uint8Array | null, back: number | null, number?: number}} Scene
 *   ink: for each position nothing (0), a swatch (from 1), or what the eraser leaves (one more than there are swatches)
 * @typedef {{height: number, width: number, covered: Uint8Array}} Stencil
 * @typedef {{x: Float32Array, truth: Int32Array | null, classes: number[]}} Ground
 */

export const SCALES = 6, ANGLES = 40
const MIDDLE_SCALE = 3
/** The canvas on which the small pictures of the kinds are drawn. */
const STAMP = 64
const within = (/** @type {number} */ value, /** @type {number} */ most) => Math.max(0, Math.min(most, value))

/** Whether a point is inside a sprite of unit size that stands upright. @type {Record<string, (along: number, up: number) => boolean>} */
const INSIDE = {
  square: (along, up) => Math.max(Math.abs(along), Math.abs(up)) <= 0.14,
  ellipse: (along, up) => (along / 0.2) ** 2 + (up / 0.11) ** 2 <= 1,
  heart(along, up) {
    const [x, y] = [along / 0.16, up / 0.16 + 0.2]
    return x ** 2 + (1.2 * y - 0.9 * Math.abs(x) ** 0.5) ** 2 <= 1
  },
  // What no network was trained on.
  triangle: (along, up) => up >= -0.12 && Math.abs(along) <= (0.18 - up) * 0.6,
  ring: (along, up) => along ** 2 + up ** 2 <= 0.17 ** 2 && along ** 2 + up ** 2 >= 0.085 ** 2,
  cross: (along, up) => Math.min(Math.abs(along), Math.abs(up)) <= 0.055 && Math.max(Math.abs(along), Math.abs(up)) <= 0.17,
}
export const SPRITES = Object.keys(INSIDE)

/** @param {boolean[][]} cells @returns {Stencil} without empty rows and columns around it */
function cropped(cells) {
  const lines = cells.filter((line) => line.includes(true))
  const columns = (cells[0] ?? []).map((_, col) => col).filter((col) => cells.some((line) => line[col]))
  return { height: lines.length, width: columns.length, covered: Uint8Array.from(lines.flatMap((line) => columns.map((col) => Number(line[col])))) }
}

/** A sprite on a canvas of this size; the twin of sprite_mask in data/sprites.py. @param {string} kind @param {number} scale from 0.5 to 1 @param {number} angle in radians @param {number} size */
export function spriteMask(kind, scale, angle, size) {
  const unit = scale * size * (64 / size) ** 0.25, half = Math.ceil(0.25 * unit)
  const line = Array.from({ length: 2 * half }, (_, i) => (i - half + 0.5) / unit)
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  return cropped(line.map((down) => line.map((right) => INSIDE[kind](cos * right + sin * down, sin * right - cos * down))))
}

const HUES = ['red', 'orange', 'yellow', 'green', 'green', 'cyan', 'cyan', 'blue', 'blue', 'purple', 'magenta', 'pink']

/** The name of a colour. @param {number[]} rgb from 0 to 1 */
export function nameOf([r, g, b]) {
  const most = Math.max(r, g, b), span = most - Math.min(r, g, b)
  if (span < 0.15) return most > 0.85 ? 'white' : most < 0.15 ? 'black' : 'grey'
  const sixth = most === r ? ((g - b) / span + 6) % 6 : most === g ? (b - r) / span + 2 : (r - g) / span + 4
  return HUES[Math.round(2 * sixth) % 12]
}

export class ObjectWorld {
  /** @param {string} name @param {number[]} shape @param {number} channels */
  constructor(name, [height, width], channels) {
    this.name = name
    this.height = height
    this.width = width
    this.channels = channels
    this.count = 0
    this.objects = 0
    this.draws = true
    /** What a thing is called. */
    this.noun = 'shape'
    /** @type {number | null} the true label of the background, 0 where it is not scored; null: there is none, or nobody knows */
    this.background = null
    /** @type {string[]} every kind of thing that a scene may hold */
    this.every = SPRITES
    /** @type {string[]} those on offer */
    this.kinds = SPRITES
    /** @type {number[][]} what a thing may have at its positions, C numbers each */
    this.colours = []
    /** @type {number[]} the colours on offer */
    this.swatches = []
    /** @type {number[]} least and most of what a picture holds */
    this.range = [0, 1]
    /** @type {Map<string, Stencil>} */
    this.stencils = new Map()
  }

  /** @param {Pick<Thing, 'kind' | 'scale' | 'angle'>} thing @returns {Stencil} */
  stencil(thing) {
    const key = `${thing.kind} ${thing.scale} ${thing.angle}`
    let found = this.stencils.get(key)
    if (!found) this.stencils.set(key, (found = this.cut(thing)))
    return found
  }

  /** @param {Pick<Thing, 'kind' | 'scale' | 'angle'>} thing */
  cut({ kind, scale, angle }) {
    return spriteMask(kind, 0.5 + (0.5 * scale) / (SCALES - 1), (2 * Math.PI * angle) / ANGLES, Math.min(this.height, this.width))
  }

  /** Height and width of a thing. @param {Thing} thing */
  size(thing) {
    return this.stencil(thing)
  }

  /** A small picture of a kind, '#' where it is. @param {string} kind @returns {string[]} */
  stamp(kind) {
    const { height, width, covered } = spriteMask(kind, 1, 0, STAMP)
    return Array.from({ length: height }, (_, row) => [...covered.subarray(row * width, (row + 1) * width)].map((on) => (on ? '#' : '.')).join(''))
  }

  /** A thing of this kind, in the middle and in front. @param {string} kind @param {Scene} _ @param {number} swatch @returns {Thing} */
  make(kind, _, swatch = 0) {
    const thing = { kind, scale: MIDDLE_SCALE, angle: 0, row: 0, col: 0, colour: this.swatches[swatch] }
    const { height, width } = this.stencil(thing)
    return { ...thing, row: (this.height - height) >> 1, col: (this.width - width) >> 1 }
  }

  /** The thing at another place, kept on the canvas. @param {Thing} thing @param {number} row @param {number} col */
  moved(thing, row, col) {
    const { height, width } = this.stencil(thing)
    return { ...thing, row: within(row, this.height - height), col: within(col, this.width - width) }
  }

  /** Whether a thing covers a position. @param {Thing} thing @param {number} row @param {number} col */
  covers(thing, row, col) {
    const { height, width, covered } = this.stencil(thing), r = row - thing.row, c = col - thing.col
    return r >= 0 && r < height && c >= 0 && c < width && covered[r * width + c] === 1
  }

  /** What to call a thing. @param {Thing} thing */
  title({ kind, colour }) {
    const name = this.kindName(kind)
    return this.swatches.length > 1 ? `${this.colourName(colour)} ${name}` : name
  }

  /** What to call a kind. @param {string} kind */
  kindName(kind) {
    return kind
  }

  /** What to call a colour. @param {number} index */
  colourName(index) {
    const values = this.colours[index], low = this.range[0], unit = this.range[1] - low
    return this.channels === 3 ? nameOf(values.map((value) => (value - low) / unit)) : `colour ${index + 1}`
  }

  /** What lies below all things. @param {number | null} back @returns {Ground} */
  ground(back) {
    const bare = this.bare(back)
    const x = Float32Array.from({ length: this.height * this.width * this.channels }, (_, at) => bare[at % this.channels])
    return { x, truth: new Int32Array(this.height * this.width), classes: [] }
  }

  /** What the eraser leaves, C numbers. @param {number | null} _ */
  bare(_) {
    return new Array(this.channels).fill(0)
  }

  /** @param {Scene} scene @returns {import('./shapes.js').Painted} */
  paint({ things, ink, back }) {
    const { x, truth, classes } = this.ground(back), { channels } = this
    const first = 1 + (truth?.reduce((most, label) => Math.max(most, label), 0) ?? 0)
    const fill = (/** @type {number} */ at, /** @type {number[]} */ colour) => x.set(colour, at * channels)
    things.forEach((thing, index) => {
      const { width, covered } = this.stencil(thing)
      covered.forEach((on, cell) => {
        const row = thing.row + Math.floor(cell / width), col = thing.col + (cell % width)
        if (!on || row >= this.height || col >= this.width) return
        fill(row * this.width + col, this.colours[thing.colour])
        if (truth) truth[row * this.width + col] = first + index
      })
    })
    ink?.forEach((drawn, at) => drawn && fill(at, drawn > this.swatches.length ? this.bare(back) : this.colours[this.swatches[drawn - 1]]))
    const known = ink ? null : truth
    return { x, truth: known, classes, scored: known?.some((label) => label > 0) ?? false }
  }

  /** The scene with some positions drawn or erased; null where nothing changes. @param {Scene} scene @param {Float32Array} _ @param {number[]} positions @param {boolean} pen @param {number} swatch */
  inked(scene, _, positions, pen, swatch) {
    const ink = scene.ink ? scene.ink.slice() : new Uint8Array(this.height * this.width)
    const value = pen ? swatch + 1 : this.swatches.length + 1
    if (positions.every((at) => ink[at] === value)) return null
    for (const at of positions) ink[at] = value
    return { ...scene, ink, number: undefined }
  }

  /** Nothing but the ground. @param {Scene} scene @returns {Scene} */
  empty({ back }) {
    return { things: [], ink: null, back }
  }

  /** How many values an ink may have beside none. */
  get inks() {
    return this.swatches.length + 1
  }

  /** @param {Thing} thing */
  toNumbers({ kind, row, col, colour, scale, angle }) {
    return [this.every.indexOf(kind), row, col, colour, scale, angle]
  }

  /** @param {number[]} numbers @returns {Thing | null} */
  fromNumbers([kind, row, col, colour, scale = MIDDLE_SCALE, angle = 0]) {
    if (!(kind in this.every) || !(colour in this.colours) || scale < 0 || scale >= SCALES || angle < 0 || angle >= ANGLES) return null
    return this.moved({ kind: this.every[kind], row: 0, col: 0, colour, scale, angle }, row, col)
  }

  /** @param {number | null} back @returns {number[]} */
  backToNumbers(back) {
    return back === null ? [] : [back]
  }

  /** @param {number[]} numbers @returns {number | null} */
  backFromNumbers([back]) {
    return Number.isInteger(back) && back >= 0 && back < this.backs ? back : null
  }

  /** Grounds to choose from, beside none. */
  get backs() {
    return 0
  }
}
