/**
 * The matrix products of a model: in WebAssembly where the browser has it, else in plain JavaScript.
 *
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{starts: Int32Array, lines: number, length: number, pitch: number}} Patches rows that are patches of an image:
 *   where each begins in x, and how many lines of what length it has, how far apart
 * @typedef {{
 *   how: 'wasm' | 'javascript', times: (name: string, x: Float32Array, rows: number, patches?: Patches) => Float32Array
 * }} Products
 */
import { assemble, BLOCK, PANEL } from './wasm.js'

/** Rows of any product that fit into memory at once; a product with more, of patches, is cut into parts. */
const LEAST_ROWS = 16
/** Numbers of a part: it stays within a processor's cache. */
const PART = 32_768
const PAGE = 65536
const up = (/** @type {number} */ value, /** @type {number} */ to) => Math.ceil(value / to) * to

/**
 * Weights (inputs, outputs) with their columns in panels of eight; the last panel is filled up with zeros.
 *
 * @param {Tensor} weight
 * @param {Float32Array} to
 */
function pack({ shape: [inputs, outputs], data }, to) {
  for (let panel = 0; panel * PANEL < outputs; panel++) {
    const first = panel * PANEL, width = Math.min(PANEL, outputs - first), begin = panel * inputs * PANEL
    for (let i = 0; i < inputs; i++) {
      for (let j = 0; j < width; j++) to[begin + i * PANEL + j] = data[i * outputs + first + j]
    }
  }
}

/** @param {Map<string, Tensor>} weights @returns {Promise<Products>} */
async function wasmProducts(weights) {
  let bytes = 0
  const places = new Map()
  for (const [name, { shape }] of weights) {
    const [inputs, outputs] = shape
    places.set(name, { at: bytes, inputs, outputs, panels: up(outputs, PANEL) / PANEL })
    bytes += 4 * inputs * up(outputs, PANEL)
  }
  const shapes = [...weights.values()].map(({ shape }) => shape)
  const room = {
    a: Math.max(PART, ...shapes.map(([inputs]) => LEAST_ROWS * inputs)),
    c: Math.max(PART, ...shapes.map(([, outputs]) => LEAST_ROWS * up(outputs, PANEL))),
  }
  const a = bytes, c = a + 4 * up(room.a, 4)
  const memory = new WebAssembly.Memory({ initial: Math.ceil((c + 4 * room.c) / PAGE) })
  const { instance } = await WebAssembly.instantiate(assemble(), { env: { memory } })
  const multiply = /** @type {Function} */ (instance.exports.multiply)
  const heap = new Float32Array(memory.buffer)
  for (const [name, weight] of weights) pack(weight, heap.subarray(places.get(name).at / 4))

  /** Rows `first` .. `first + count` of x, in blocks of four; a last block is filled up with its last row. @param {Float32Array} x @param {number} first @param {number} count @param {number} inputs @param {Patches} [patches] */
  function lay(x, first, count, inputs, patches) {
    const { lines, length, pitch } = patches ?? { lines: 1, length: inputs, pitch: 0 }
    const last = first + count - 1
    for (let row = first, to = a / 4; row <= last; row += BLOCK) {
      let [p, q, u, v] = [row, row + 1, row + 2, row + 3].map((r) => (patches ? patches.starts[Math.min(r, last)] : Math.min(r, last) * inputs))
      for (let line = 0; line < lines; line++) {
        for (let i = 0; i < length; i++, to += BLOCK) {
          heap[to] = x[p + i]
          heap[to + 1] = x[q + i]
          heap[to + 2] = x[u + i]
          heap[to + 3] = x[v + i]
        }
        p += pitch
        q += pitch
        u += pitch
        v += pitch
      }
    }
  }

  /** Rows of the product out of their panels. @param {Float32Array} out @param {number} first @param {number} count @param {number} outputs @param {number} blocks */
  function collect(out, first, count, outputs, blocks) {
    for (let begin = 0, panel = c / 4; begin < outputs; begin += PANEL, panel += blocks * BLOCK * PANEL) {
      const width = Math.min(PANEL, outputs - begin)
      for (let r = 0; r < count; r++) {
        const from = panel + r * PANEL, to = (first + r) * outputs + begin
        for (let j = 0; j < width; j++) out[to + j] = heap[from + j]
      }
    }
  }

  /** @type {Products['times']} */
  function times(name, x, rows, patches) {
    const { at, inputs, outputs, panels } = places.get(name)
    const most = Math.floor(Math.min(room.a / inputs, room.c / up(outputs, PANEL)) / BLOCK) * BLOCK
    const out = new Float32Array(rows * outputs)
    for (let first = 0; first < rows; first += most) {
      const count = Math.min(most, rows - first), blocks = up(count, BLOCK) / BLOCK
      lay(x, first, count, inputs, patches)
      multiply(a, at, c, blocks, inputs, panels)
      collect(out, first, count, outputs, blocks)
    }
    return out
  }
  return { how: 'wasm', times }
}

/** Every patch as a row of its own. @param {Float32Array} x @param {number} inputs @param {Patches} patches */
function unrolled(x, inputs, { starts, lines, length, pitch }) {
  const rows = new Float32Array(starts.length * inputs)
  starts.forEach((start, r) => {
    for (let line = 0; line < lines; line++) {
      const begin = start + line * pitch
      rows.set(x.subarray(begin, begin + length), r * inputs + line * length)
    }
  })
  return rows
}

/** @param {Map<string, Tensor>} weights @returns {Products} */
function plainProducts(weights) {
  return {
    how: 'javascript',
    times(name, given, rows, patches) {
      const { shape: [inputs, outputs], data } = /** @type {Tensor} */ (weights.get(name))
      const x = patches ? unrolled(given, inputs, patches) : given
      const out = new Float32Array(rows * outputs)
      for (let i = 0; i < inputs; i += 4) {
        const [a, b, c, d] = [0, 1, 2, 3].map((next) => Math.min(i + next, inputs - 1) * outputs)
        for (let r = 0; r < rows; r++) {
          const [p, q, u, v] = [0, 1, 2, 3].map((next) => (i + next < inputs ? x[r * inputs + i + next] : 0))
          for (let j = 0, to = r * outputs; j < outputs; j++, to++) {
            out[to] += p * data[a + j] + q * data[b + j] + u * data[c + j] + v * data[d + j] // four rows of weights at once
          }
        }
      }
      return out
    },
  }
}

/**
 * @param {Map<string, Tensor>} weights matrices (inputs, outputs) by name
 * @param {boolean} [plain] do without WebAssembly
 */
export async function products(weights, plain = false) {
  if (!plain && typeof WebAssembly === 'object') {
    try {
      return await wasmProducts(weights)
    } catch {
      // no SIMD, or no memory for a second copy of the weights
    }
  }
  return plainProducts(weights)
}
