/**
 * First masks that know something of the scene: clusters of its values, of its parts, or of values or textures at their places. The
 * twin of tag/informed.py and tag/clusters.py, for one scene.
 * K groups · P positions · C channels · N = P C elements · R parts · M = 2 N · F features
 *
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{quiet: Float32Array, shapes: Float32Array, together: Float32Array, overlap: Float32Array}} Parts what the training
 *   data are made of: silence (2, N), the parts (R, M), which appear together (R, R), and how much they overlap (R, R)
 */
import { softmaxOverGroups } from './likelihood.js'

/** R */
export const PARTS = 24
const FURTHEST = 8, QUIET = 4, LOUD = 0.5, MOVES = 5, UPDATES = 30, TRIES = 8, EQUAL = 1e-4, SMALL = 1e-6

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
 * @param {{weight: number, apart: number, smooth: number}} how the weight of places against values; the least distance
 *   between two beginnings, as a share of an image's side; above 1, the side of the squares in which a texture is judged
 */
export function byPlaces(x, random, channels, [height, width], { weight, apart, smooth }) {
  const positions = height * width, middle = medians(x, channels)
  const difference = x.map((value, at) => value - middle[at % channels]), loudness = loudnessOf(difference, channels)
  const size = Math.max(loudness.reduce((sum, value) => sum + value, 0) / positions, SMALL ** 2)
  const heard = smooth > 1 ? averaged(loudness, height, width, smooth) : loudness, reach = LOUD ** 2 * size
  const loud = heard.map((value) => Number(value > reach)), scaled = difference.map((value) => value / Math.sqrt(size))
  const described = smooth > 1 ? textures(scaled, loud, height, width, 2 * smooth - 1) : scaled
  const place = (/** @type {number} */ at, /** @type {number} */ length) => (length > 1 ? weight * ((2 * at) / (length - 1) - 1) : -weight)
  const count = described.length / positions, features = new Float32Array(positions * (count + 2))
  for (let p = 0; p < positions; p++) {
    features.set(described.subarray(p * count, (p + 1) * count), p * (count + 2))
    features.set([place(Math.floor(p / width), height), place(p % width, width)], p * (count + 2) + count)
  }
  const from = smooth > 1 ? loud : apart ? heard.map((value, p) => value * loud[p]) : heard // what is silent must not begin a cluster
  const cell = [height, width].reduce((area, length) => (area * 2 * weight) / Math.max(length - 1, 1), 1)
  return besideSilence((some) => compactClusters(features, from, loud, some, 2 * weight * apart, cell), heard, reach, random)
}

/**
 * The direction and the fineness of the texture around each position (P, 4): the products of the slopes, averaged over what
 * is loud in a square and divided by their trace, and half the logarithm of the trace.
 *
 * @param {Float32Array} x (P, C)
 * @param {Float32Array} loud (P) 1 or 0
 * @param {number} height
 * @param {number} width
 * @param {number} side of the square
 */
export function textures(x, loud, height, width, side) {
  const positions = height * width, channels = x.length / positions
  const [downwards, across, both] = [0, 1, 2].map(() => new Float32Array(positions))
  /** The slope at an element, along an axis on which it is the `at`-th of `length`. */
  const slope = (/** @type {number} */ element, /** @type {number} */ at, /** @type {number} */ length, /** @type {number} */ step) => {
    const after = at < length - 1 ? 1 : 0, before = at > 0 ? 1 : 0
    return (x[element + after * step] - x[element - before * step]) / Math.max(after + before, 1)
  }
  x.forEach((_, element) => {
    const p = Math.floor(element / channels), part = loud[p] / channels
    const down = slope(element, Math.floor(p / width), height, width * channels), right = slope(element, p % width, width, channels)
    downwards[p] += part * down ** 2
    across[p] += part * right ** 2
    both[p] += part * down * right
  })
  const share = averaged(loud, height, width, side), found = new Float32Array(4 * positions)
  const [rows, columns, mixed] = [downwards, across, both].map((product) =>
    averaged(product, height, width, side).map((value, p) => value / Math.max(share[p], SMALL)),
  )
  for (let p = 0; p < positions; p++) {
    const trace = Math.max(rows[p] + columns[p], SMALL)
    found.set([(Math.SQRT2 * rows[p]) / trace, (2 * mixed[p]) / trace, (Math.SQRT2 * columns[p]) / trace, Math.log(trace) / 2], 4 * p)
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
 * Weighted k-means of the positions of a scene: minus the squared distance from each centre, 0 for the nearest, in units
 * of the mean squared distance from the nearest.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Float32Array} random (K, P)
 */
export function clusters(features, weight, random) {
  return inUnits(squaredDistances(features, weight, random, 0), weight)
}

/**
 * The same, the most compact of several tries: those whose distances are the least longer than in discs of the same area. Of
 * tries that are equal but for rounding, the first.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Float32Array} counted (P) 1 for the positions whose distances count
 * @param {Float32Array} random (K, P)
 * @param {number} apart
 * @param {number} cell the area of a position
 */
function compactClusters(features, weight, counted, random, apart, cell) {
  const positions = weight.length, step = Math.floor(positions / TRIES)
  const found = Array.from({ length: TRIES }, (_, one) => {
    const rolled = random.map((_, at) => random[at - (at % positions) + ((at + step * one) % positions)])
    return squaredDistances(features, weight, rolled, apart)
  })
  const scores = found.map(({ distances, nearest }) => {
    let moment = 0, least = 0
    for (let first = 0; first < distances.length; first += positions) {
      let count = 0
      for (let p = 0; p < positions; p++) {
        if (distances[first + p] !== nearest[p] || !counted[p]) continue
        count += 1
        moment += nearest[p]
      }
      least += (cell * count ** 2) / (2 * Math.PI)
    }
    return { excess: moment - least, moment }
  })
  const enough = Math.min(...scores.map(({ excess, moment }) => excess + EQUAL * moment))
  return inUnits(found[scores.findIndex(({ excess }) => excess <= enough)], weight)
}

/** @param {{distances: Float32Array, nearest: Float32Array}} found @param {Float32Array} weight */
function inUnits({ distances, nearest }, weight) {
  const sum = (/** @type {Float32Array} */ values) => values.reduce((total, value) => total + value, 0)
  const spread = Math.max(sum(nearest.map((value, p) => value * weight[p])) / Math.max(sum(weight), SMALL), SMALL)
  return distances.map((distance, at) => Math.max((nearest[at % weight.length] - distance) / spread, -FURTHEST))
}

/**
 * Of all positions from the centres of weighted k-means, and from the nearest of them.
 *
 * Standard normal numbers decide where the centres begin: each at a position drawn by its weight, times its squared
 * distance from those drawn before (k-means++). A centre is left out that could only begin less than `apart` from another.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Float32Array} random (K, P)
 * @param {number} apart
 */
function squaredDistances(features, weight, random, apart) {
  const positions = weight.length, width = features.length / positions, groups = random.length / positions
  const centres = new Float32Array(groups * width), found = new Float32Array(random.length), nearest = new Float32Array(positions).fill(1)
  /** @type {Set<number>} */
  const leftOut = new Set()

  /** Squared distances from a centre. @param {number} k */
  function measure(k) {
    for (let p = 0; p < positions; p++) {
      let distance = 0
      for (let f = 0; f < width; f++) distance += (features[p * width + f] - centres[k * width + f]) ** 2
      if (leftOut.has(k)) distance = Infinity
      found[k * positions + p] = distance
      nearest[p] = k ? Math.min(nearest[p], distance) : distance
    }
  }

  for (let k = 0; k < groups; k++) {
    const free = k ? weight.map((value, p) => (nearest[p] >= apart ** 2 ? value : 0)) : weight
    if (k && Math.max(...free) <= SMALL ** 2) leftOut.add(k)
    const chosen = drawn(free, nearest, random.subarray(k * positions, (k + 1) * positions))
    centres.set(features.subarray(chosen * width, (chosen + 1) * width), k * width)
    measure(k)
  }
  for (let move = 0; move < MOVES; move++) {
    for (let k = 0; k < groups; k++) {
      const sums = new Float64Array(width)
      let total = 0
      for (let p = 0; p < positions; p++) {
        if (found[k * positions + p] !== nearest[p]) continue
        total += weight[p]
        for (let f = 0; f < width; f++) sums[f] += weight[p] * features[p * width + f]
      }
      if (total > SMALL) centres.set(sums.map((sum) => sum / total), k * width)
    }
    for (let k = 0; k < groups; k++) measure(k)
  }
  return { distances: found, nearest }
}

/**
 * A position, drawn by its weight times its distance: the largest sum of their logarithms and a Gumbel number.
 *
 * @param {Float32Array} weight
 * @param {Float32Array} distance
 * @param {Float32Array} normal
 */
function drawn(weight, distance, normal) {
  let highest = -Infinity, chosen = 0
  normal.forEach((value, p) => {
    const chance = -Math.log(-Math.log(Math.min(Math.max(ndtr(value), SMALL), 1 - SMALL)))
    const score = Math.log(Math.max(weight[p], SMALL ** 2)) + Math.log(Math.max(distance[p], SMALL ** 2)) + chance
    if (score > highest) [highest, chosen] = [score, p]
  })
  return chosen
}

/** The share of standard normal numbers below x (Marsaglia's series). @param {number} x */
export function ndtr(x) {
  let sum = x, before = 0, term = x
  for (let n = 3; sum !== before; n += 2) {
    before = sum
    term *= x ** 2 / n
    sum += term
  }
  return 0.5 + (sum * Math.exp(-(x ** 2) / 2)) / Math.sqrt(2 * Math.PI)
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
