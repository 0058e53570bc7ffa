/**
 * K-means of the positions of a scene, as masks before their softmax. The twin of tag/clusters.py, for one scene.
 * K groups · P positions · F features
 */

export const FURTHEST = 8, SMALL = 1e-6
const MOVES = 5, TRIES = 8, EQUAL = 1e-4

/**
 * Of K clusters (K, P), and what the nearest of them has (P).
 * @typedef {{distances: Float32Array, nearest: Float32Array}} Found
 */

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
 * @param {{apart: number, cell: number, sizes: boolean}} how the least distance between two beginnings; the area of a position;
 *   whether the border of a large and a small cluster is nearer to the small one
 */
export function compactClusters(features, weight, counted, random, { apart, cell, sizes }) {
  const positions = weight.length, step = Math.floor(positions / TRIES)
  const tries = Array.from({ length: TRIES }, (_, one) => {
    const rolled = random.map((_, at) => random[at - (at % positions) + ((at + step * one) % positions)])
    const found = squaredDistances(features, weight, rolled, apart)
    return sizes ? ofOwnSize(features, weight, found, cell) : { found, distances: found.distances }
  })
  const scores = tries.map(({ found, distances }) => {
    let moment = 0, least = 0
    for (let first = 0; first < distances.length; first += positions) {
      let count = 0
      for (let p = 0; p < positions; p++) {
        if (found.distances[first + p] !== found.nearest[p] || !counted[p]) continue
        count += 1
        moment += distances[first + p]
      }
      least += count * leastMoment(count, cell)
    }
    return { excess: moment - least, moment }
  })
  const enough = Math.min(...scores.map(({ excess, moment }) => excess + EQUAL * moment))
  const { found } = tries[scores.findIndex(({ excess }) => excess <= enough)]
  return sizes ? belowNearest(found, 1) : inUnits(found, weight)
}

/** The mean squared distance of so many positions from the middle of a disc that they fill. @param {number} count @param {number} cell */
function leastMoment(count, cell) {
  return (cell * count) / (2 * Math.PI)
}

/**
 * From the clusters of these distances to Gaussians, each with a share and a spread of its own: minus the logarithm of a
 * position's probability under each of them, in the place of distances, and its squared distance from their middles.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Found} before
 * @param {number} cell
 */
function ofOwnSize(features, weight, before, cell) {
  const positions = weight.length
  let found = before, distances = before.distances
  for (let move = 0; move < MOVES; move++) {
    const last = found, { centres, totals } = middles(features, weight, last)
    distances = fromCentres(features, centres, totals.length)
    const spreads = totals.map((total, k) => {
      let sum = 0
      for (let p = 0; p < positions; p++) {
        const at = k * positions + p
        if (last.distances[at] === last.nearest[p]) sum += weight[p] * distances[at]
      }
      return sum / Math.max(total, SMALL) + leastMoment(1, cell)
    })
    found = withNearest(
      distances.map((distance, at) => {
        const k = Math.floor(at / positions)
        return totals[k] > SMALL ? distance / spreads[k] + Math.log(spreads[k]) - Math.log(totals[k]) : Infinity
      }),
      positions,
    )
  }
  return { found, distances }
}

/**
 * K-means that goes on from the clusters of other features.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Float32Array} masks (K, P) before their softmax
 */
export function movedClusters(features, weight, masks) {
  const positions = weight.length
  let found = withNearest(masks.map((value) => -value), positions)
  for (let move = 0; move < MOVES; move++) {
    const { centres, totals } = middles(features, weight, found)
    const distances = fromCentres(features, centres, totals.length)
    found = withNearest(distances.map((distance, at) => (totals[Math.floor(at / positions)] > SMALL ? distance : Infinity)), positions)
  }
  return inUnits(found, weight)
}

/** @param {Found} found @param {Float32Array} weight */
function inUnits(found, weight) {
  const sum = (/** @type {Float32Array} */ values) => values.reduce((total, value) => total + value, 0)
  return belowNearest(found, Math.max(sum(found.nearest.map((value, p) => value * weight[p])) / Math.max(sum(weight), SMALL), SMALL))
}

/** How much less near than to the nearest, in this unit. @param {Found} found @param {number} unit */
function belowNearest({ distances, nearest }, unit) {
  return distances.map((distance, at) => Math.max((nearest[at % nearest.length] - distance) / unit, -FURTHEST))
}

/** @param {Float32Array} distances (K, P) @param {number} positions @returns {Found} */
function withNearest(distances, positions) {
  const nearest = distances.slice(0, positions)
  distances.forEach((distance, at) => (nearest[at % positions] = Math.min(nearest[at % positions], distance)))
  return { distances, nearest }
}

/**
 * The weighted mean of the positions of each cluster, and their weight.
 *
 * @param {Float32Array} features (P, F)
 * @param {Float32Array} weight (P)
 * @param {Found} found
 */
function middles(features, weight, { distances, nearest }) {
  const positions = weight.length, width = features.length / positions, groups = distances.length / positions
  const centres = new Float32Array(groups * width), totals = new Float64Array(groups)
  for (let k = 0; k < groups; k++) {
    const sums = new Float64Array(width)
    for (let p = 0; p < positions; p++) {
      if (distances[k * positions + p] !== nearest[p]) continue
      totals[k] += weight[p]
      for (let f = 0; f < width; f++) sums[f] += weight[p] * features[p * width + f]
    }
    centres.set(sums.map((sum) => sum / Math.max(totals[k], SMALL)), k * width)
  }
  return { centres, totals }
}

/** Squared distances of all positions (K, P). @param {Float32Array} features (P, F) @param {Float32Array} centres (K, F) @param {number} groups */
function fromCentres(features, centres, groups) {
  const width = centres.length / groups, positions = features.length / width, found = new Float32Array(groups * positions)
  for (let k = 0; k < groups; k++) {
    for (let p = 0; p < positions; p++) {
      let distance = 0
      for (let f = 0; f < width; f++) distance += (features[p * width + f] - centres[k * width + f]) ** 2
      found[k * positions + p] = distance
    }
  }
  return found
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
  const centres = new Float32Array(groups * width), nearest = new Float32Array(positions).fill(1)
  /** @type {Set<number>} */
  const leftOut = new Set()
  for (let k = 0; k < groups; k++) {
    const free = k ? weight.map((value, p) => (nearest[p] >= apart ** 2 ? value : 0)) : weight
    if (k && Math.max(...free) <= SMALL ** 2) leftOut.add(k)
    const chosen = drawn(free, nearest, random.subarray(k * positions, (k + 1) * positions))
    const centre = features.slice(chosen * width, (chosen + 1) * width)
    centres.set(centre, k * width)
    if (leftOut.has(k)) continue
    fromCentres(features, centre, 1).forEach((distance, p) => (nearest[p] = k ? Math.min(nearest[p], distance) : distance))
  }
  const measured = () => {
    const distances = fromCentres(features, centres, groups)
    for (const k of leftOut) distances.fill(Infinity, k * positions, (k + 1) * positions)
    return withNearest(distances, positions)
  }
  let found = measured()
  for (let move = 0; move < MOVES; move++) {
    const { centres: moved, totals } = middles(features, weight, found)
    totals.forEach((total, k) => total > SMALL && centres.set(moved.subarray(k * width, (k + 1) * width), k * width))
    found = measured()
  }
  return found
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
