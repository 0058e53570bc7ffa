/**
 * The package's random numbers (rng.py): element i of a stream is splitmix64(key + i). The same seed gives the same
 * scenes and the same random starts here and in Python.
 */

const GOLDEN = 0x9e3779b97f4a7c15n, MIX_1 = 0xbf58476d1ce4e5b9n, MIX_2 = 0x94d049bb133111ebn
const wrap = (/** @type {bigint} */ word) => BigInt.asUintN(64, word)

/** The finaliser of splitmix64. */
function mix(/** @type {bigint} */ word) {
  word = wrap((word ^ (word >> 30n)) * MIX_1)
  word = wrap((word ^ (word >> 27n)) * MIX_2)
  return word ^ (word >> 31n)
}

/** @param {string} text @returns {bigint} as zlib computes it */
export function crc32(text) {
  let crc = ~0
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return BigInt(~crc >>> 0)
}

/** The name of a stream of random numbers. */
export class Key {
  /** @param {bigint} word */
  constructor(word) {
    this.word = word
  }

  /** @param {number | bigint} seed */
  static of(seed) {
    return new Key(mix(wrap(BigInt(seed) + GOLDEN)))
  }

  /** A stream of its own for these names and numbers. @param {(number | string)[]} parts */
  fold(...parts) {
    let { word } = this
    for (const part of parts) {
      const number = typeof part === 'string' ? crc32(part) : BigInt(part)
      word = mix(wrap((word ^ wrap(number * GOLDEN)) + GOLDEN))
    }
    return new Key(word)
  }

  /** 64 random bits for each of `count` elements. @param {number} count @param {number} start */
  bits(count, start = 0) {
    return BigUint64Array.from({ length: count }, (_, i) => mix(wrap(this.word + BigInt(start + i) * GOLDEN)))
  }

  /** Uniform in [0, 1) with 24 bits. @param {number} count @param {number} start */
  uniform(count, start = 0) {
    return Float32Array.from(this.bits(count, start), (word) => Number(word >> 40n) * 2 ** -24)
  }

  /** Standard normal (Box and Muller). @param {number} count @param {number} start */
  normal(count, start = 0) {
    return Float32Array.from(this.bits(count, start), (word) => {
      const radius = (Number(word >> 40n) + 1) * 2 ** -24
      const angle = Number((word >> 8n) & 0xffffffn) * (2 ** -24 * 2 * Math.PI)
      return Math.sqrt(-2 * Math.log(radius)) * Math.cos(angle)
    })
  }

  /** Integers in [0, high). @param {number} high @param {number} count @param {number} start @returns {number[]} */
  integers(high, count, start = 0) {
    return Array.from(this.bits(count, start), (word) => Number(((word >> 33n) * BigInt(high)) >> 31n))
  }

  /** A random order of 0 .. n-1. @param {number} n @returns {number[]} */
  permutation(n) {
    const signed = BigInt64Array.from(this.bits(n), (word) => BigInt.asIntN(64, word))
    return Array.from({ length: n }, (_, i) => i).sort((a, b) => (signed[a] < signed[b] ? -1 : signed[a] > signed[b] ? 1 : a - b))
  }
}
