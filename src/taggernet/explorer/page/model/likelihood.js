/**
 * What the mapping sees of a group, from x~, z and m: delta z and L(m). The twin of tag/likelihood.py.
 * K groups · P positions · C channels, side by side · N = P C elements · x (N) · z, delta z (K, N) · m, L(m) (K, P)
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {{
 *   mean: (pre: Float32Array) => Float32Array,
 *   fedBack: (pre: Float32Array, z: Float32Array) => Float32Array,
 *   evidence: (x: Float32Array, z: Float32Array, m: Float32Array, groups: number) => {deltaZ: Float32Array, ratio: Float32Array},
 * }} Likelihood
 */

const CLIP = 1e-4
const MASK_FLOOR = 1e-20

/** 1 / (1 + exp(-x)) */
export const sigmoid = (/** @type {number} */ x) => 1 / (1 + Math.exp(-x))

/**
 * softmax over the K rows of (K, N), for each of the N columns.
 *
 * @param {Float32Array} pre
 * @param {number} groups
 */
export function softmaxOverGroups(pre, groups) {
  const n = pre.length / groups, out = new Float32Array(pre.length)
  for (let e = 0; e < n; e++) {
    let highest = -Infinity, total = 0
    for (let at = e; at < pre.length; at += n) highest = Math.max(highest, pre[at])
    for (let at = e; at < pre.length; at += n) total += out[at] = Math.exp(pre[at] - highest)
    for (let at = e; at < pre.length; at += n) out[at] /= total
  }
  return out
}

/** The sum over the channels of each position. @param {Float32Array} values (.., P C) @param {number} channels */
function sumChannels(values, channels) {
  if (channels === 1) return values
  const sums = new Float32Array(values.length / channels)
  for (let at = 0; at < values.length; at++) sums[Math.floor(at / channels)] += values[at]
  return sums
}

/** The posterior of each group at each position. @param {Float32Array} log (K, P) of the likelihoods @param {Float32Array} m @param {number} groups */
const posteriorOf = (log, m, groups) => softmaxOverGroups(log.map((value, at) => value + Math.log(m[at] + MASK_FLOOR)), groups)

/**
 * @param {ModelConfig} config
 * @param {number} v variance of a Gaussian group
 * @returns {Likelihood}
 */
export function likelihoodFor(config, v) {
  if (config.kind === 'categorical') return categorical(config)
  if (config.kind === 'real') return gaussian(config, v)
  return config.channels === 1 ? bernoulli(config) : bernoulliChannels(config)
}

const logits = (/** @type {ModelConfig} */ { feedback }) =>
  (/** @type {Float32Array} */ pre, /** @type {Float32Array} */ z) => (feedback === 'logits' ? pre : z)

/** @param {ModelConfig} config @returns {Likelihood} */
function bernoulli(config) {
  const { noise: beta } = config
  return {
    mean: (pre) => pre.map(sigmoid),
    fedBack: logits(config),
    evidence(x, z, m) {
      const n = x.length, deltaZ = new Float32Array(z.length), ratio = new Float32Array(z.length)
      for (let e = 0; e < n; e++) {
        let xi = 0, total = 0
        for (let at = e; at < z.length; at += n) {
          const seen = z[at] * (1 - 2 * beta) + beta
          xi += seen * m[at]
          const clipped = seen * (1 - 2 * CLIP) + CLIP
          total += ratio[at] = x[e] * clipped + (1 - x[e]) * (1 - clipped)
        }
        const denominator = xi - 1 + x[e]
        const safe = x[e] > 0.5 ? Math.max(denominator, CLIP) : Math.min(denominator, -CLIP)
        for (let at = e; at < z.length; at += n) {
          deltaZ[at] = ((1 - 2 * beta) * m[at]) / safe
          ratio[at] /= total
        }
      }
      return { deltaZ, ratio }
    },
  }
}

/** Several bits at each position, which share its mask. @param {ModelConfig} config @returns {Likelihood} */
function bernoulliChannels(config) {
  const { noise: beta, channels } = config
  return {
    mean: (pre) => pre.map(sigmoid),
    fedBack: logits(config),
    evidence(x, z, m, groups) {
      const n = x.length
      const likelihood = z.map((value, at) => {
        const xi = (value * (1 - 2 * beta) + beta) * (1 - 2 * CLIP) + CLIP, seen = x[at % n]
        return seen * xi + (1 - seen) * (1 - xi)
      })
      const log = sumChannels(likelihood.map(Math.log), channels), posterior = posteriorOf(log, m, groups)
      const deltaZ = likelihood.map((value, at) =>
        ((1 - 2 * beta) * posterior[Math.floor(at / channels)] * (2 * x[at % n] - 1)) / value)
      return { deltaZ, ratio: softmaxOverGroups(log, groups) }
    },
  }
}

/** One of C states at each position, as one-hot channels. @param {ModelConfig} config @returns {Likelihood} */
function categorical(config) {
  const { noise: beta, channels } = config
  const kept = 1 - (beta * channels) / (channels - 1), other = beta / (channels - 1)
  return {
    mean(pre) {
      const z = new Float32Array(pre.length)
      for (let begin = 0; begin < pre.length; begin += channels) {
        let highest = -Infinity, total = 0
        for (let at = begin; at < begin + channels; at++) highest = Math.max(highest, pre[at])
        for (let at = begin; at < begin + channels; at++) total += z[at] = Math.exp(pre[at] - highest)
        for (let at = begin; at < begin + channels; at++) z[at] /= total
      }
      return z
    },
    fedBack: logits(config),
    evidence(x, z, m, groups) {
      const n = x.length, p = n / channels, deltaZ = new Float32Array(z.length), ratio = new Float32Array(m.length)
      for (let e = 0; e < p; e++) {
        let evidence = 0, total = 0
        for (let k = 0; k < groups; k++) {
          const first = (k * p + e) * channels
          let seen = 0, clipped = 0
          for (let c = 0; c < channels; c++) {
            const xi = z[first + c] * kept + other, shown = x[e * channels + c]
            seen += shown * xi
            clipped += shown * (xi * (1 - channels * CLIP) + CLIP)
          }
          evidence += seen * m[k * p + e]
          total += ratio[k * p + e] = clipped
        }
        for (let k = 0; k < groups; k++) {
          const at = k * p + e, posterior = (kept * m[at]) / Math.max(evidence, CLIP)
          ratio[at] /= total
          for (let c = 0; c < channels; c++) deltaZ[at * channels + c] = x[e * channels + c] * posterior
        }
      }
      return { deltaZ, ratio }
    },
  }
}

/** @param {ModelConfig} config @param {number} v @returns {Likelihood} */
function gaussian({ noise: sigma, delta_z: form, ratio_variance: kind, channels }, v) {
  const corrupted = v + sigma ** 2
  const variance = kind === 'reference' ? sigma ** 2 + v ** 2 : corrupted
  return {
    mean: (pre) => pre,
    fedBack: (_, z) => z,
    evidence(x, z, m, groups) {
      const n = x.length
      const residual = z.map((value, at) => x[at % n] - value)
      const ratio = softmaxOverGroups(sumChannels(residual.map((r) => (-0.5 * r * r) / variance), channels), groups)
      return { deltaZ: gaussianDelta(residual, m, groups), ratio }
    },
  }

  /** @param {Float32Array} residual @param {Float32Array} m @param {number} groups */
  function gaussianDelta(residual, m, groups) {
    const position = channels === 1 ? (/** @type {number} */ at) => at : (/** @type {number} */ at) => Math.floor(at / channels)
    if (form === 'eq4') return residual.map((r, at) => r * m[position(at)])
    const log = sumChannels(residual.map((r) => -0.5 * (Math.log(2 * Math.PI * corrupted) + (r * r) / corrupted)), channels)
    if (form === 'algorithm') return residual.map((r, at) => r * m[position(at)] * Math.exp(log[position(at)]))
    const posterior = posteriorOf(log, m, groups)
    return residual.map((r, at) => (posterior[position(at)] * r) / corrupted)
  }
}
