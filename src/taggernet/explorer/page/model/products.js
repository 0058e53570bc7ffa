/**
 * The matrix products of a model: in WebAssembly where the browser has it, else in plain JavaScript.
 *
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{how: 'wasm' | 'javascript', times: (name: string, x: Float32Array, rows: number) => Float32Array}} Products
 */
import { assemble, BLOCK, PANEL } from './wasm.js'

export const MOST_ROWS = 16
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
  const widest = Math.max(...[...weights.values()].map(({ shape }) => Math.max(...shape)))
  const a = bytes, c = a + 4 * up(MOST_ROWS * widest, 4)
  const end = c + 4 * MOST_ROWS * up(widest, PANEL)
  const memory = new WebAssembly.Memory({ initial: Math.ceil(end / PAGE) })
  const { instance } = await WebAssembly.instantiate(assemble(), { env: { memory } })
  const multiply = /** @type {Function} */ (instance.exports.multiply)
  const heap = new Float32Array(memory.buffer)
  for (const [name, weight] of weights) pack(weight, heap.subarray(places.get(name).at / 4))

  /** @type {Products['times']} */
  function times(name, x, rows) {
    const { at, inputs, outputs, panels } = places.get(name)
    const blocks = up(rows, BLOCK) / BLOCK
    for (let r = 0; r < blocks * BLOCK; r++) {
      let to = a / 4 + (r >> 2) * inputs * BLOCK + (r & 3)
      for (let i = r * inputs; i < (r + 1) * inputs; i++, to += BLOCK) heap[to] = r < rows ? x[i] : 0
    }
    multiply(a, at, c, blocks, inputs, panels)
    const out = new Float32Array(rows * outputs)
    for (let r = 0; r < rows; r++) {
      for (let j = 0; j < outputs; j++) {
        out[r * outputs + j] = heap[c / 4 + ((j >> 3) * blocks + (r >> 2)) * 32 + (r & 3) * PANEL + (j & 7)]
      }
    }
    return out
  }
  return { how: 'wasm', times }
}

/** @param {Map<string, Tensor>} weights @returns {Products} */
function plainProducts(weights) {
  return {
    how: 'javascript',
    times(name, x, rows) {
      const { shape: [inputs, outputs], data } = /** @type {Tensor} */ (weights.get(name))
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
