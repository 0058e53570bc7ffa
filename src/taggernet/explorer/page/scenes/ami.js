/** Agreement of two labellings: adjusted mutual information, normalised by the larger entropy, and foreground ARI, as in
 * metrics/ami.py. */

/** log n! for n = 0 .. most */
function logFactorials(/** @type {number} */ most) {
  const logs = new Float64Array(most + 1)
  for (let n = 2; n <= most; n++) logs[n] = logs[n - 1] + Math.log(n)
  return logs
}

/** Entropy (nats) of parts of these sizes. @param {number[]} sizes @param {number} total */
const entropy = (sizes, total) => sizes.reduce((sum, size) => (size ? sum - (size / total) * Math.log(size / total) : sum), 0)

/** The most probable group of every element. @param {Float32Array} m (K, N) @param {number} groups */
export function labels(m, groups) {
  const n = m.length / groups
  return Uint8Array.from({ length: n }, (_, e) => {
    let best = 0
    for (let k = 1; k < groups; k++) if (m[k * n + e] > m[best * n + e]) best = k
    return best
  })
}

/**
 * How many scored elements have each pair of labels, and each label; an element whose true label is 0, or `without`, is
 * not scored.
 *
 * @param {ArrayLike<number>} truth
 * @param {Uint8Array} found
 * @param {number} [without]
 */
function contingency(truth, found, without = 0) {
  /** @type {Map<number, Map<number, number>>} */
  const table = new Map()
  /** @type {Map<number, number>} */
  const columns = new Map()
  let total = 0
  for (let at = 0; at < truth.length; at++) {
    if (truth[at] <= 0 || truth[at] === without) continue
    total += 1
    const row = table.get(truth[at]) ?? new Map()
    row.set(found[at], (row.get(found[at]) ?? 0) + 1)
    table.set(truth[at], row)
    columns.set(found[at], (columns.get(found[at]) ?? 0) + 1)
  }
  const cells = [...table.values()].flatMap((row) => [...row.values()])
  const rows = [...table.values()].map((row) => [...row.values()].reduce((a, b) => a + b))
  const cols = [...columns.values()]
  return { total, cells, rows, cols, same: cells.length === rows.length && cells.length === cols.length }
}

/**
 * 1 for the same groups, about 0 for chance; null where no element has a true label (0 means none).
 *
 * @param {ArrayLike<number>} truth
 * @param {Uint8Array} found
 */
export function adjustedMutualInformation(truth, found) {
  const { total, cells, rows, cols, same } = contingency(truth, found)
  if (!total) return null
  if (same) return 1
  if (rows.length === 1 || cols.length === 1 || rows.length === total || cols.length === total) return 0
  const h = [entropy(rows, total), entropy(cols, total)]
  const expected = expectedInformation(rows, cols, total)
  return (h[0] + h[1] - entropy(cells, total) - expected) / (Math.max(...h) - expected)
}

/**
 * The adjusted Rand index of what is not background: 1 for the same groups, about 0 for chance; null where there is
 * nothing else.
 *
 * @param {ArrayLike<number>} truth
 * @param {Uint8Array} found
 * @param {number} background its true label
 */
export function foregroundRandIndex(truth, found, background) {
  const { total, cells, rows, cols, same } = contingency(truth, found, background)
  if (!total) return null
  if (same) return 1
  const squares = (/** @type {number[]} */ sizes) => sizes.reduce((sum, size) => sum + size * size, 0)
  const both = squares(cells), trueOnly = squares(rows) - both, foundOnly = squares(cols) - both
  const neither = total * total - both - trueOnly - foundOnly, pairs = both - total
  const chance = (pairs + trueOnly) * (trueOnly + neither) + (pairs + foundOnly) * (foundOnly + neither)
  return (2 * (pairs * neither - trueOnly * foundOnly)) / chance
}

/** Mean mutual information over all ways to deal the elements into parts of these sizes (Vinh et al. 2010, Eq. 24a). */
function expectedInformation(/** @type {number[]} */ rows, /** @type {number[]} */ cols, /** @type {number} */ total) {
  const log = logFactorials(total)
  let sum = 0
  for (const a of rows) {
    for (const b of cols) {
      const fixed = log[a] + log[b] + log[total - a] + log[total - b] - log[total]
      for (let n = Math.max(1, a + b - total); n <= Math.min(a, b); n++) {
        const probability = Math.exp(fixed - log[n] - log[a - n] - log[b - n] - log[total - a - b + n])
        sum += probability * (n / total) * Math.log((total * n) / (a * b))
      }
    }
  }
  return sum
}
