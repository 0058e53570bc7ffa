/**
 * Reads a safetensors file: eight bytes of length, a JSON header, then the tensors.
 *
 * @typedef {{shape: number[], data: Float32Array}} Tensor
 */

const WIDTH = { F64: 8, F32: 4, F16: 2, BF16: 2, U8: 1, I8: 1, I64: 8, I32: 4, I16: 2 }
const LONGEST_HEADER = 10_000_000

/** @type {Float32Array | undefined} */
let halves

/** The value of every half-precision number, by its 16 bits. */
export function halfTable() {
  if (halves) return halves
  halves = new Float32Array(65536)
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31
    const fraction = bits & 1023
    let value = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24
    if (exponent === 31) value = fraction ? NaN : Infinity
    halves[bits] = bits >> 15 ? -value : value
  }
  return halves
}

/**
 * @param {string} kind
 * @param {ArrayBuffer} bytes
 * @returns {Float32Array}
 */
function floats(kind, bytes) {
  switch (kind) {
    case 'F32': return new Float32Array(bytes)
    case 'F64': return Float32Array.from(new Float64Array(bytes))
    case 'F16': {
      const table = halfTable(), bits = new Uint16Array(bytes), values = new Float32Array(bits.length)
      for (let i = 0; i < bits.length; i++) values[i] = table[bits[i]]
      return values
    }
    case 'BF16': return new Float32Array(Uint32Array.from(new Uint16Array(bytes), (bits) => bits << 16).buffer)
    case 'U8': return Float32Array.from(new Uint8Array(bytes))
    case 'I8': return Float32Array.from(new Int8Array(bytes))
    case 'I16': return Float32Array.from(new Int16Array(bytes))
    case 'I32': return Float32Array.from(new Int32Array(bytes))
    default: return Float32Array.from(new BigInt64Array(bytes), Number)
  }
}

const ROW_SCALE = '.row_scale'

/**
 * The tensors of a model: matrices that are stored in eight bits multiplied by the scales of their rows.
 *
 * @param {ArrayBuffer} buffer
 * @param {string} source what to call the file in an error
 * @returns {Map<string, Tensor>}
 */
export function readWeights(buffer, source) {
  const tensors = readTensors(buffer, source)
  for (const [name, { data: scales }] of [...tensors].filter(([name]) => name.endsWith(ROW_SCALE))) {
    tensors.delete(name)
    const matrix = tensors.get(name.slice(0, -ROW_SCALE.length))
    const columns = matrix?.shape.at(-1) ?? 0
    if (!matrix || scales.length * columns !== matrix.data.length) {
      throw new Error(`${source}: ${name} does not fit: copy the model again`)
    }
    scales.forEach((scale, row) => {
      for (let i = row * columns; i < (row + 1) * columns; i++) matrix.data[i] *= scale
    })
  }
  return tensors
}

/**
 * The tensors of a file, each as float32.
 *
 * @param {ArrayBuffer} buffer
 * @param {string} source what to call the file in an error
 * @returns {Map<string, Tensor>}
 */
export function readTensors(buffer, source) {
  const damaged = (/** @type {string} */ why) => new Error(`${source} is damaged (${why}): copy it again`)
  if (buffer.byteLength < 8) throw damaged('it is shorter than its header')
  const length = Number(new DataView(buffer).getBigUint64(0, true))
  const begin = 8 + length
  if (length > LONGEST_HEADER || begin > buffer.byteLength) throw damaged('its header has no end')
  let header
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(buffer, 8, length)))
  } catch {
    throw damaged('its header is not JSON')
  }
  const tensors = new Map()
  for (const [name, entry] of Object.entries(header ?? {})) {
    if (name === '__metadata__') continue
    const { dtype, shape, data_offsets: offsets } = entry ?? {}
    const width = WIDTH[/** @type {keyof typeof WIDTH} */ (dtype)]
    if (!width) throw damaged(`${name} holds ${dtype}`)
    if (!Array.isArray(shape) || !Array.isArray(offsets)) throw damaged(`${name} has no shape or no place`)
    const [from, to] = offsets
    if (to - from !== width * shape.reduce((size, side) => size * side, 1) || !(from >= 0)) {
      throw damaged(`${name} does not have the size of its shape`)
    }
    if (begin + to > buffer.byteLength) throw damaged(`it ends before ${name} does`)
    tensors.set(name, { shape, data: floats(dtype, buffer.slice(begin + from, begin + to)) })
  }
  return tensors
}
