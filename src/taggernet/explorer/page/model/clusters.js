/**
 * K-means of the positions of a scene, as masks before their softmax. The twin of tag/clusters.py, for one scene.
 * K groups · P positions · F features
 */

export const FURTHEST = 8, SMALL = 1e-6
const MOVES = 5, TRIES = 8, EQUAL = 1e-4

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
export function compactClusters(features, weight, counted, random, apart, cell) {
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
