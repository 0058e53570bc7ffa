/**
 * Scenes of a file, x (n, H, W) and optionally groups and classes; or, without one, an empty canvas.
 *
 * @typedef {import('../model/safetensors.js').Tensor} Tensor
 */

export class OwnWorld {
  /** @param {number[]} shape @param {string} kind @param {Map<string, Tensor> | null} file */
  constructor([height, width], kind, file) {
    this.height = height
    this.width = width
    this.file = file
    this.name = 'own'
    this.objects = 0
    this.count = file ? /** @type {Tensor} */ (file.get('x')).shape[0] : 0
    this.draws = kind === 'binary'
    /** @type {string[]} */
    this.kinds = []
  }

  size() {
    return { height: 0, width: 0 }
  }

  /** @param {number} number */
  test(number) {
    return this.count ? { things: [], ink: null, number } : { things: [], ink: new Uint8Array(this.height * this.width) }
  }

  /** A scene picked at random. @param {number} _ @param {number} seed */
  random(_, seed) {
    return this.test(this.count ? (seed * 7919) % this.count : 0)
  }

  /** @param {string} name @param {number | undefined} number */
  row(name, number) {
    const tensor = this.file?.get(name)
    if (!tensor || number === undefined) return null
    const size = tensor.data.length / this.count
    return tensor.data.subarray(number * size, (number + 1) * size)
  }

  covers() {
    return false
  }

  title() {
    return ''
  }

  /** @param {any} thing */
  moved(thing) {
    return thing
  }

  make() {
    return null
  }

  /** @param {{ink: Uint8Array | null, number?: number}} scene */
  paint({ ink, number }) {
    if (ink) return { x: Float32Array.from(ink), truth: null, classes: [], scored: false }
    const groups = this.row('groups', number), classes = this.row('classes', number)
    return {
      x: Float32Array.from(this.row('x', number) ?? []),
      truth: groups && Uint8Array.from(groups),
      classes: classes ? [...classes].filter((label) => label >= 0) : [],
      scored: groups !== null && groups.some((label) => label > 0),
    }
  }
}
