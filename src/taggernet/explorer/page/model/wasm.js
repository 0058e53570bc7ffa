/**
 * A matrix product in WebAssembly SIMD, written down instruction by instruction and assembled here.
 *
 * The product C = A B works on panels: B has its columns in panels of eight, (panels, inner, 8), A its rows in blocks of
 * four, (blocks, inner, 4), and C comes out as (panels, blocks, 4, 8). Eight registers hold a block of C while `inner`
 * is summed over.
 */

/** Columns of a panel of B, and rows of a block of A. */
export const PANEL = 8
export const BLOCK = 4

const I32 = 0x7f, V128 = 0x7b, VOID = 0x40

/** @param {number} value @returns {number[]} LEB128, unsigned */
function leb(value) {
  const bytes = []
  do {
    const low = value & 127
    value >>>= 7
    bytes.push(value ? low | 128 : low)
  } while (value)
  return bytes
}

/** @param {number} value @returns {number[]} LEB128, signed */
function signedLeb(value) {
  const bytes = []
  for (;;) {
    const low = value & 127
    value >>= 7
    if ((value === 0 && !(low & 64)) || (value === -1 && low & 64)) return [...bytes, low]
    bytes.push(low | 128)
  }
}

const get = (/** @type {number} */ local) => [0x20, ...leb(local)]
const set = (/** @type {number} */ local) => [0x21, ...leb(local)]
const i32 = (/** @type {number} */ value) => [0x41, ...signedLeb(value)]
const ADD = [0x6a], SUB = [0x6b], MUL = [0x6c], NOT_EQUAL = [0x47]
const simd = (/** @type {number} */ code, /** @type {number[]} */ ...rest) => [0xfd, ...leb(code), ...rest]
const place = (/** @type {number} */ align, /** @type {number} */ offset) => [align, ...leb(offset)]
const load = (/** @type {number} */ offset) => simd(0, ...place(4, offset))
const loadSplat = (/** @type {number} */ offset) => simd(9, ...place(2, offset))
const store = (/** @type {number} */ offset) => simd(11, ...place(4, offset))
const ZERO = simd(12, ...new Array(16).fill(0))
const F32X4_ADD = simd(0xe4), F32X4_MUL = simd(0xe6)
/** A loop whose body leaves on the stack whether to go round again. */
const loop = (/** @type {number[][]} */ ...body) => [0x03, VOID, ...body.flat(), 0x0d, 0, 0x0b]
const increase = (/** @type {number} */ local, /** @type {number[]} */ by) => [...get(local), ...by, ...ADD, ...set(local)]

/** multiply(a, b, c, blocks, inner, panels): addresses in bytes, then counts. */
function multiply() {
  const [a, b, c, blocks, inner, panels] = [0, 1, 2, 3, 4, 5]
  const [atA, atB, end, block] = [6, 7, 8, 9]
  const [left, right, row] = [10, 11, 12]
  const sums = Array.from({ length: 2 * BLOCK }, (_, i) => 13 + i)

  const add = (/** @type {number} */ sum, /** @type {number} */ half) =>
    [...get(sum), ...get(row), ...get(half), ...F32X4_MUL, ...F32X4_ADD, ...set(sum)]
  const oneRow = (/** @type {number} */ r) =>
    [...get(atA), ...loadSplat(4 * r), ...set(row), ...add(sums[2 * r], left), ...add(sums[2 * r + 1], right)]
  const overInner = loop(
    [...get(atB), ...load(0), ...set(left)],
    [...get(atB), ...load(16), ...set(right)],
    ...[0, 1, 2, 3].map(oneRow),
    increase(atB, i32(32)),
    increase(atA, i32(16)),
    [...get(atA), ...get(end), ...NOT_EQUAL],
  )
  const overBlocks = loop(
    sums.flatMap((sum) => [...ZERO, ...set(sum)]),
    [...get(b), ...set(atB)],
    [...get(atA), ...get(inner), ...i32(16), ...MUL, ...ADD, ...set(end)],
    overInner,
    sums.flatMap((sum, i) => [...get(c), ...get(sum), ...store(16 * i)]),
    increase(c, i32(128)),
    [...get(block), ...i32(1), ...SUB, ...set(block)],
    get(block),
  )
  const overPanels = loop(
    [...get(a), ...set(atA)],
    [...get(blocks), ...set(block)],
    overBlocks,
    increase(b, [...get(inner), ...i32(32), ...MUL]),
    [...get(panels), ...i32(1), ...SUB, ...set(panels)],
    get(panels),
  )
  const locals = [2, ...leb(4), I32, ...leb(3 + sums.length), V128]
  return [...locals, ...overPanels, 0x0b]
}

/** @param {number} id @param {number[]} content */
const section = (id, content) => [id, ...leb(content.length), ...content]
const name = (/** @type {string} */ text) => [...leb(text.length), ...new TextEncoder().encode(text)]

/** The bytes of the module: it imports env.memory and exports multiply. */
export function assemble() {
  const body = multiply()
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 6, ...new Array(6).fill(I32), 0]),
    ...section(2, [1, ...name('env'), ...name('memory'), 2, 0, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name('multiply'), 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ])
}
