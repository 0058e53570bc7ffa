/**
 * What all mappings are made of: products, norms and activations of rows. The twin of nets/norm.py and nets/linear.py.
 * R rows · F features
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {import('./products.js').Products} Products
 * @typedef {{
 *   of: (name: string) => Float32Array,
 *   times: (name: string, x: Float32Array, rows: number, patches?: import('./products.js').Patches) => Float32Array,
 *   norm: (name: string, x: Float32Array, rows: number, iteration: number) => Float32Array,
 * }} Layers
 */

/** Standard deviations to which frozen norms are clipped, as in nets/norm.py. */
const FARTHEST = 20

/**
 * The parameters of a mapping by their names, and what is computed with them.
 *
 * @param {ModelConfig} config
 * @param {Map<string, Tensor>} tensors
 * @param {Products} products
 * @returns {Layers}
 */
export function layersOf(config, tensors, products) {
  const of = (/** @type {string} */ name) => /** @type {Tensor} */ (tensors.get(`mapping.${name}`)).data
  return {
    of,
    times: (name, x, rows, patches) => products.times(`mapping.${name}.weight`, x, rows, patches),
    norm(name, x, rows, iteration) {
      const frozen = config.norm === 'batch' ? { mean: of(`${name}.mean`), variance: of(`${name}.variance`) } : null
      return normalise(x, rows, config.norm_eps, frozen, iteration)
    },
  }
}

/**
 * Normalise rows in place, by their own statistics or by those frozen for the iteration.
 *
 * @param {Float32Array} x (R, F)
 * @param {number} rows
 * @param {number} eps
 * @param {{mean: Float32Array, variance: Float32Array} | null} frozen (T, F) each
 * @param {number} iteration from 1; beyond the last frozen one, that one counts
 */
export function normalise(x, rows, eps, frozen, iteration) {
  const features = x.length / rows
  if (frozen) {
    const last = frozen.mean.length / features, first = (Math.min(iteration, last) - 1) * features
    const factors = frozen.variance.slice(first, first + features).map((variance) => 1 / Math.sqrt(variance + eps))
    for (let begin = 0; begin < x.length; begin += features) {
      for (let f = 0; f < features; f++) {
        const value = (x[begin + f] - frozen.mean[first + f]) * factors[f]
        x[begin + f] = Math.max(-FARTHEST, Math.min(FARTHEST, value))
      }
    }
    return x
  }
  for (let begin = 0; begin < x.length; begin += features) {
    let mean = 0, variance = 0
    for (let at = begin; at < begin + features; at++) mean += x[at]
    mean /= features
    for (let at = begin; at < begin + features; at++) variance += (x[at] -= mean) ** 2
    const factor = 1 / Math.sqrt(variance / features + eps)
    for (let at = begin; at < begin + features; at++) x[at] *= factor
  }
  return x
}

/** softmax(scale (z + bias)) of every row. @param {Float32Array} z @param {Float32Array} bias @param {Float32Array} scale */
export function softmaxRows(z, bias, scale) {
  const width = bias.length, out = new Float32Array(z.length)
  for (let begin = 0; begin < z.length; begin += width) {
    let highest = -Infinity, total = 0
    for (let f = 0; f < width; f++) highest = Math.max(highest, (out[begin + f] = scale[f] * (z[begin + f] + bias[f])))
    for (let f = 0; f < width; f++) total += out[begin + f] = Math.exp(out[begin + f] - highest)
    for (let f = 0; f < width; f++) out[begin + f] /= total
  }
  return out
}

/** relu(z + bias) of every row. @param {Float32Array} z @param {Float32Array} bias */
export function rectify(z, bias) {
  const width = bias.length, out = new Float32Array(z.length)
  for (let begin = 0; begin < z.length; begin += width) {
    for (let f = 0; f < width; f++) out[begin + f] = Math.max(0, z[begin + f] + bias[f])
  }
  return out
}

/** The sigmoid between -REACH and REACH, STEPS times per unit: linear between them, it is within 2e-7. */
const REACH = 20, STEPS = 256
const SIGMOID = Float64Array.from({ length: 2 * REACH * STEPS + 1 }, (_, i) => 1 / (1 + Math.exp(REACH - i / STEPS)))

/** 1 / (1 + exp(-x)), from a table: a combinator needs it three times for every feature. @param {number} x */
export function quickSigmoid(x) {
  const at = (x + REACH) * STEPS
  if (at <= 0) return 0
  if (at >= 2 * REACH * STEPS) return 1
  const low = at | 0
  return SIGMOID[low] + (at - low) * (SIGMOID[low + 1] - SIGMOID[low])
}

/**
 * g(z, u) = (z - mu(u)) v(u) + mu(u), with ten numbers per feature.
 *
 * @param {Float32Array} z (R, F)
 * @param {Float32Array} u (R, F)
 * @param {Float32Array} a (10, F)
 * @param {boolean} stable a sigmoid on v
 */
export function combine(z, u, a, stable) {
  const width = a.length / 10, out = new Float32Array(z.length)
  const [, a2, a3, a4, a5, a6, a7, a8, a9, a10] = Array.from({ length: 10 }, (_, i) => i * width)
  for (let begin = 0; begin < z.length; begin += width) {
    for (let f = 0; f < width; f++) {
      const at = begin + f, above = u[at]
      const mu = a[f] * quickSigmoid(a[a2 + f] * above + a[a3 + f]) + a[a4 + f] * above + a[a5 + f]
      let v = a[a6 + f] * quickSigmoid(a[a7 + f] * above + a[a8 + f]) + a[a9 + f] * above + a[a10 + f]
      if (stable) v = quickSigmoid(v)
      out[at] = (z[at] - mu) * v + mu
    }
  }
  return out
}

/**
 * How a level of the decoder comes from what is above it: by a combinator, or without lateral connections by a ReLU.
 *
 * @param {ModelConfig} config
 * @param {Layers['of']} of
 */
export function combinatorFor(config, of) {
  const stable = hasStableGate(config)
  /** @param {string} name @param {Float32Array} z (R, F) @param {Float32Array} u (R, F) */
  return (name, z, u) => (config.lateral ? combine(z, u, of(`${name}.a`), stable) : rectify(u, of(`${name}.bias`)))
}

/** The sigmoid on the combinator's gate. @param {ModelConfig} config */
function hasStableGate({ gate, kind, mapping }) {
  return gate === 'auto' ? kind === 'real' || mapping === 'conv' : gate === 'stable'
}

/** Whether z and m are normalised before their activations. @param {ModelConfig} config */
export function hasNormalisedHeads({ heads, norm }) {
  return heads === 'auto' ? norm === 'batch' : heads === 'normalised'
}

/** The widths of the Ladder's levels below which the mapping puts its own. @param {ModelConfig} config */
export function ladderWidths({ widths, classes, class_widths: beside }) {
  return classes > 0 && !beside.length ? [...widths, classes + 1] : widths
}
