/**
 * First masks that know something of the scene: clusters of its values, of its parts, or of values or textures at their
 * places. The twin of tag/informed.py, for one scene.
 * K groups · P positions · C channels · N = P C elements · R parts · M = 2 N · F features
 *
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{quiet: Float32Array, shapes: Float32Array, together: Float32Array, overlap: Float32Array}} Parts what the training
 *   data are made of: silence (2, N), the parts (R, M), which appear together (R, R), and how much they overlap (R, R)
 */
import { clusters, compactClusters, movedClusters, FURTHEST, SMALL } from './clusters.js'
import { softmaxOverGroups } from './likelihood.js'

/** R */
export const PARTS = 24
const QUIET = 4, LOUD = 0.5, UPDATES = 30, INSIDE = 0.98, EDGE = 0.01

/** @param {Map<string, Tensor>} tensors @returns {Parts} */
export function partsOf(tensors) {
  const of = (/** @type {string} */ name) => /** @type {Tensor} */ (tensors.get(name)).data
  const shapes = of('start_shapes'), overlap = new Float32Array(PARTS * PARTS), m = shapes.length / PARTS
  for (let r = 0; r < PARTS; r++) overlap.set(alikeOf(shapes.subarray(r * m, (r + 1) * m), shapes), r * PARTS)
  return { quiet: of('start_quiet'), shapes, together: of('start_together'), overlap }
}

/** How far x is above silence, and how far below. @param {Float32Array} x @param {Float32Array} quiet */
function apartOf(x, quiet) {
  const apart = new Float32Array(2 * x.length)
  x.forEach((value, at) => {
    apart[at] = Math.max(value - quiet[at], 0)
    apart[x.length + at] = Math.max(quiet[at] - value, 0)
  })
  return apart
}

/** The product with every part. @param {Float32Array} apart @param {Float32Array} shapes */
function alikeOf(apart, shapes) {
  const alike = new Float32Array(PARTS), m = apart.length
  for (let r = 0; r < PARTS; r++) {
    let sum = 0
    for (let at = 0; at < m; at++) sum += apart[at] * shapes[r * m + at]
    alike[r] = sum
  }
  return alike
}

/** How much of each part is in a scene: non-negative least squares (Lee and Seung's updates). @param {Float32Array} alike @param {Float32Array} overlap */
function weightsOf(alike, overlap) {
  let weights = alike.map((value) => value + SMALL)
  for (let update = 0; update < UPDATES; update++) {
    const explained = weights.map((_, r) => weights.reduce((sum, value, q) => sum + value * overlap[q * PARTS + r], 0))
    weights = weights.map((value, r) => (value * alike[r]) / (explained[r] + SMALL ** 2))
  }
  return weights
}

/**
 * Masks before their softmax: positions with like values, of all channels, start in one group.
 *
 * @param {Float32Array} x
 * @param {Float32Array} random (K, P)
 * @param {number} channels
 */
export function byValue(x, random, channels) {
  return clusters(x, new Float32Array(x.length / channels).fill(1), random)
}

/**
 * Masks before their softmax: positions that are explained by parts which appear together start in one group.
 *
 * @param {Float32Array} x
 * @param {Float32Array} random (K, P)
 * @param {number} channels
 * @param {Parts} parts
 */
export function byParts(x, random, channels, { quiet, shapes, together, overlap }) {
  const n = x.length, positions = n / channels
  const weights = weightsOf(alikeOf(apartOf(x, quiet), shapes), overlap)
  const features = new Float32Array(positions * PARTS), share = new Float64Array(PARTS)
  for (let p = 0; p < positions; p++) {
    share.fill(0)
    for (let at = p * channels; at < (p + 1) * channels; at++) {
      const side = x[at] > quiet[at] ? at : n + at
      for (let r = 0; r < PARTS; r++) share[r] += shapes[r * 2 * n + side] * weights[r]
    }
    const total = Math.max(share.reduce((sum, value) => sum + value, 0), SMALL)
    for (let r = 0; r < PARTS; r++) {
      for (let f = 0; f < PARTS; f++) features[p * PARTS + f] += (share[r] / total) * together[r * PARTS + f]
    }
  }
  const loudness = loudnessOf(x.map((value, at) => value - quiet[at]), channels)
  return besideSilence((some) => clusters(features, loudness, some), loudness, Math.max(quiet[n], SMALL ** 2), random)
}

/**
 * Masks before their softmax: positions with like values, or of like texture, that are near each other start in one group.
 *
 * @param {Float32Array} x
 * @param {Float32Array} random (K, P)
 * @param {number} channels
 * @param {number[]} shape height and width
 * @param {{weight: number, apart: number, sizes: boolean, smooth: number}} how the weight of places against values; the least
 *   distance between two beginnings, as a share of an image's side; whether clusters differ in size; above 1, the side of the
 *   squares in which a texture is judged
 */
export function byPlaces(x, random, channels, [height, width], { weight, apart, sizes, smooth }) {
  const positions = height * width, middle = medians(x, channels)
  const difference = x.map((value, at) => value - middle[at % channels]), loudness = loudnessOf(difference, channels)
  const size = Math.max(loudness.reduce((sum, value) => sum + value, 0) / positions, SMALL ** 2)
  const heard = smooth > 1 ? averaged(loudness, height, width, smooth) : loudness, reach = LOUD ** 2 * size
  const loud = heard.map((value) => Number(value > reach)), scaled = difference.map((value) => value / Math.sqrt(size))
  const place = (/** @type {number} */ at, /** @type {number} */ length) => (length > 1 ? weight * ((2 * at) / (length - 1) - 1) : -weight)

  /** What describes a position, and where it is. @param {Float32Array} described */
  function withPlaces(described) {
    const count = described.length / positions, features = new Float32Array(positions * (count + 2))
    for (let p = 0; p < positions; p++) {
      features.set(described.subarray(p * count, (p + 1) * count), p * (count + 2))
      features.set([place(Math.floor(p / width), height), place(p % width, width)], p * (count + 2) + count)
    }
    return features
  }

  const from = smooth > 1 ? loud : apart ? heard.map((value, p) => value * loud[p]) : heard // what is silent must not begin a cluster
  const cell = [height, width].reduce((area, length) => (area * 2 * weight) / Math.max(length - 1, 1), 1)
  const how = { apart: 2 * weight * apart, cell, sizes }

  /** @param {Float32Array} some of the random numbers */
  function grouped(some) {
    if (smooth <= 1) return compactClusters(withPlaces(scaled), from, loud, some, how)
    // slopes near the edge of a texture are those of the edge: they count where there are no others
    const inside = averaged(loud, height, width, smooth).map((share, p) => Number(share > INSIDE) + EDGE * loud[p])
    const ofTexture = (/** @type {number} */ side) => withPlaces(textures(scaled, inside, height, width, side))
    // found in large squares, and their ends in smaller ones
    return movedClusters(ofTexture(smooth), from, compactClusters(ofTexture(2 * smooth + 1), from, loud, some, how))
  }

  return besideSilence(grouped, heard, reach, random)
}

/**
 * The direction and the fineness of the texture around each position (P, 4): the products of the slopes, averaged over a
 * square and divided by their trace, and the logarithm of the trace.
 *
 * @param {Float32Array} x (P, C)
 * @param {Float32Array} weight (P) of each position in the average
 * @param {number} height
 * @param {number} width
 * @param {number} side of the square
 */
export function textures(x, weight, height, width, side) {
  const positions = height * width, channels = x.length / positions
  const [downwards, across, both] = [0, 1, 2].map(() => new Float32Array(positions))
  /** The slope at an element, along an axis on which it is the `at`-th of `length`. */
  const slope = (/** @type {number} */ element, /** @type {number} */ at, /** @type {number} */ length, /** @type {number} */ step) => {
    const after = at < length - 1 ? 1 : 0, before = at > 0 ? 1 : 0
    return (x[element + after * step] - x[element - before * step]) / Math.max(after + before, 1)
  }
  x.forEach((_, element) => {
    const p = Math.floor(element / channels), part = weight[p] / channels
    const down = slope(element, Math.floor(p / width), height, width * channels), right = slope(element, p % width, width, channels)
    downwards[p] += part * down ** 2
    across[p] += part * right ** 2
    both[p] += part * down * right
  })
  const share = averaged(weight, height, width, side), found = new Float32Array(4 * positions)
  const [rows, columns, mixed] = [downwards, across, both].map((product) =>
    averaged(product, height, width, side).map((value, p) => value / Math.max(share[p], SMALL)),
  )
  for (let p = 0; p < positions; p++) {
    const trace = Math.max(rows[p] + columns[p], SMALL)
    found.set([(Math.SQRT2 * rows[p]) / trace, (2 * mixed[p]) / trace, (Math.SQRT2 * columns[p]) / trace, Math.log(trace)], 4 * p)
  }
  return found
}

/** The mean over a square around each position, as much of it as lies inside. @param {Float32Array} x @param {number} height @param {number} width @param {number} side */
export function averaged(x, height, width, side) {
  const reach = Math.floor(side / 2)
  return x.map((_, at) => {
    const y = Math.floor(at / width), column = at % width
    let sum = 0, count = 0
    for (let row = Math.max(0, y - reach); row <= Math.min(height - 1, y + reach); row++) {
      for (let col = Math.max(0, column - reach); col <= Math.min(width - 1, column + reach); col++, count++) sum += x[row * width + col]
    }
    return sum / count
  })
}

/** The median of each channel, of an even number the lower one. @param {Float32Array} x @param {number} channels */
export function medians(x, channels) {
  const middle = Math.floor((x.length / channels - 1) / 2)
  return Array.from({ length: channels }, (_, c) => x.filter((_, at) => at % channels === c).sort()[middle])
}

/** The mean square of each position. @param {Float32Array} difference @param {number} channels */
function loudnessOf(difference, channels) {
  const loudness = new Float32Array(difference.length / channels)
  difference.forEach((value, at) => (loudness[Math.floor(at / channels)] += value ** 2 / channels))
  return loudness
}

/**
 * What is loud, grouped; with more than two groups the last one starts with what is silent, up to `reach`.
 *
 * @param {(random: Float32Array) => Float32Array} grouped
 * @param {Float32Array} loudness (P)
 * @param {number} reach
 * @param {Float32Array} random (K, P)
 */
function besideSilence(grouped, loudness, reach, random) {
  const positions = loudness.length, last = random.length - positions
  if (last <= positions) return grouped(random)
  const mPre = new Float32Array(random.length)
  mPre.set(grouped(random.subarray(0, last)))
  mPre.set(loudness.map((value) => Math.max(QUIET * (1 - value / reach), -FURTHEST)), last)
  return mPre
}

/**
 * First masks with their groups in the order of other masks: those with most in common first.
 *
 * @param {Float32Array} mPre (K, P), before their softmax
 * @param {Float32Array} m (K, P)
 * @param {number} groups
 */
export function inOrderOf(mPre, m, groups) {
  const first = softmaxOverGroups(mPre, groups), n = m.length / groups, ordered = new Float32Array(mPre.length)
  const pairs = Array.from({ length: groups ** 2 }, (_, pair) => {
    const from = pair % groups, to = Math.floor(pair / groups)
    let common = 0
    for (let p = 0; p < n; p++) common += first[from * n + p] * m[to * n + p]
    return { from, to, common }
  }).sort((a, b) => b.common - a.common)
  const gone = new Set(), filled = new Set()
  for (const { from, to } of pairs) {
    if (gone.has(from) || filled.has(to)) continue
    ordered.set(mPre.subarray(from * n, (from + 1) * n), to * n)
    gone.add(from)
    filled.add(to)
  }
  return ordered
}
