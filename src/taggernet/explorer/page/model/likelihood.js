/**
 * What the mapping sees of a group, from x~, z and m: delta z and L(m). The twin of tag/likelihood.py.
 * K groups · N elements · z, m (K, N)
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 */

const CLIP = 1e-4
const POSTERIOR_FLOOR = 1e-20

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

/**
 * @param {ModelConfig} config
 * @param {number} v variance of a Gaussian group
 */
export function likelihoodFor(config, v) {
  return config.kind === 'binary' ? bernoulli(config) : gaussian(config, v)
}

/** @param {ModelConfig} config */
function bernoulli({ noise: beta, feedback }) {
  return {
    mean: (/** @type {Float32Array} */ pre) => pre.map(sigmoid),
    fedBack: (/** @type {Float32Array} */ pre, /** @type {Float32Array} */ z) => (feedback === 'logits' ? pre : z),
    /** @param {Float32Array} x @param {Float32Array} z @param {Float32Array} m @param {number} groups */
    evidence(x, z, m, groups) {
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
    /** log q(x~|g_k). @param {Float32Array} x @param {Float32Array} z */
    logEvidence(x, z) {
      return z.map((value, at) => {
        const one = (value * (1 - 2 * beta) + beta) * (1 - 2 * CLIP) + CLIP, seen = x[at % x.length]
        return Math.log(seen * one + (1 - seen) * (1 - one))
      })
    },
  }
}

/** @param {ModelConfig} config @param {number} v */
function gaussian({ noise: sigma, delta_z: form, ratio_variance: kind }, v) {
  const corrupted = v + sigma ** 2
  const variance = kind === 'reference' ? sigma ** 2 + v ** 2 : corrupted
  return {
    mean: (/** @type {Float32Array} */ pre) => pre,
    fedBack: (/** @type {Float32Array} */ _, /** @type {Float32Array} */ z) => z,
    /** @param {Float32Array} x @param {Float32Array} z @param {Float32Array} m @param {number} groups */
    evidence(x, z, m, groups) {
      const n = x.length
      const residual = z.map((value, at) => x[at % n] - value)
      const ratio = softmaxOverGroups(residual.map((r) => (-0.5 * r * r) / variance), groups)
      return { deltaZ: gaussianDelta(residual, m, groups), ratio }
    },
    /** log q(x~|g_k). @param {Float32Array} x @param {Float32Array} z */
    logEvidence: (x, z) => z.map((value, at) => logDensity(x[at % x.length] - value)),
  }

  /** @param {number} r */
  function logDensity(r) {
    return -0.5 * (Math.log(2 * Math.PI * corrupted) + (r * r) / corrupted)
  }

  /** @param {Float32Array} residual @param {Float32Array} m @param {number} groups */
  function gaussianDelta(residual, m, groups) {
    if (form === 'eq4') return residual.map((r, at) => r * m[at])
    const log = residual.map(logDensity)
    if (form === 'algorithm') return residual.map((r, at) => r * m[at] * Math.exp(log[at]))
    const posterior = softmaxOverGroups(log.map((l, at) => l + Math.log(m[at] + POSTERIOR_FLOOR)), groups)
    return residual.map((r, at) => (posterior[at] * r) / corrupted)
  }
}
