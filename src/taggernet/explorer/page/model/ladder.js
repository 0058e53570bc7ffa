/**
 * The Ladder as TAG's mapping: rows of [z, m, delta z, L(m)] in, z and m before their activations out. The twin of
 * nets/ladder.py. R rows, one per group · F features
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {import('./products.js').Products} Products
 * @typedef {{zPre: Float32Array, mPre: Float32Array, top: Float32Array}} Mapped
 */

/** Standard deviations to which frozen norms are clipped, as in nets/norm.py. */
const FARTHEST = 20

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
    for (let at = 0; at < x.length; at++) {
      const f = first + (at % features)
      const value = (x[at] - frozen.mean[f]) / Math.sqrt(frozen.variance[f] + eps)
      x[at] = Math.max(-FARTHEST, Math.min(FARTHEST, value))
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

/** softmax(scale (z + bias)) of every row. */
function softmaxRows(/** @type {Float32Array} */ z, /** @type {Float32Array} */ bias, /** @type {Float32Array} */ scale) {
  const width = bias.length, out = new Float32Array(z.length)
  for (let begin = 0; begin < z.length; begin += width) {
    let highest = -Infinity, total = 0
    for (let f = 0; f < width; f++) highest = Math.max(highest, (out[begin + f] = scale[f] * (z[begin + f] + bias[f])))
    for (let f = 0; f < width; f++) total += out[begin + f] = Math.exp(out[begin + f] - highest)
    for (let f = 0; f < width; f++) out[begin + f] /= total
  }
  return out
}

/** relu(z + bias) */
function rectify(/** @type {Float32Array} */ z, /** @type {Float32Array} */ bias) {
  const width = bias.length, out = new Float32Array(z.length)
  for (let begin = 0; begin < z.length; begin += width) {
    for (let f = 0; f < width; f++) out[begin + f] = Math.max(0, z[begin + f] + bias[f])
  }
  return out
}

/**
 * g(z, u) = (z - mu(u)) v(u) + mu(u), with ten numbers per feature.
 *
 * @param {Float32Array} z
 * @param {Float32Array} u
 * @param {Float32Array} a (10, F)
 * @param {boolean} stable a sigmoid on v
 */
function combine(z, u, a, stable) {
  const width = a.length / 10, out = new Float32Array(z.length)
  const [, a2, a3, a4, a5, a6, a7, a8, a9, a10] = Array.from({ length: 10 }, (_, i) => i * width)
  for (let f = 0; f < width; f++) {
    for (let at = f; at < z.length; at += width) {
      const above = u[at]
      const mu = a[f] / (1 + Math.exp(-(a[a2 + f] * above + a[a3 + f]))) + a[a4 + f] * above + a[a5 + f]
      let v = a[a6 + f] / (1 + Math.exp(-(a[a7 + f] * above + a[a8 + f]))) + a[a9 + f] * above + a[a10 + f]
      if (stable) v = 1 / (1 + Math.exp(-v))
      out[at] = (z[at] - mu) * v + mu
    }
  }
  return out
}

/**
 * @param {ModelConfig} config
 * @param {Map<string, Tensor>} tensors
 * @param {Products} products
 */
export function ladderFor(config, tensors, products) {
  const elements = config.shape.reduce((size, side) => size * side, 1)
  const onTop = config.classes > 0 && !config.class_widths.length
  const levels = config.widths.length + (onTop ? 1 : 0)
  const stable = config.gate === 'auto' ? config.kind === 'real' : config.gate === 'stable'
  const normalisedHeads = config.heads === 'auto' ? config.norm === 'batch' : config.heads === 'normalised'
  const softmaxTop = onTop || config.top === 'softmax'

  const of = (/** @type {string} */ name) => /** @type {Tensor} */ (tensors.get(name)).data
  const times = (/** @type {string} */ name, /** @type {Float32Array} */ x, /** @type {number} */ rows) =>
    products.times(`mapping.${name}.weight`, x, rows)
  /** @param {string} name @param {Float32Array} x @param {number} rows @param {number} iteration */
  function norm(name, x, rows, iteration) {
    const frozen = config.norm === 'batch' ? { mean: of(`mapping.${name}.mean`), variance: of(`mapping.${name}.variance`) } : null
    return normalise(x, rows, config.norm_eps, frozen, iteration)
  }

  /** The classes, where a head beside the Ladder reads them. */
  function classHead(/** @type {Float32Array} */ features, /** @type {number} */ rows, /** @type {number} */ iteration) {
    /** @type {Float32Array} */
    let h = features
    if (config.class_input === 'masks') {
      h = new Float32Array(rows * elements)
      for (let r = 0; r < rows; r++) h.set(features.subarray((4 * r + 1) * elements, (4 * r + 2) * elements), r * elements)
    }
    const last = config.class_widths.length
    for (let level = 0; level <= last; level++) {
      const z = norm(`reader.norms.${level}`, times(`reader.layers.${level}`, h, rows), rows, iteration)
      const bias = of(`mapping.reader.biases.${level}`)
      h = level === last ? softmaxRows(z, bias, of('mapping.reader.scale')) : rectify(z, bias)
    }
    return h
  }

  /**
   * @param {Float32Array} features (R, 4N)
   * @param {number} rows
   * @param {number} iteration from 1
   * @returns {Mapped}
   */
  return function mapping(features, rows, iteration) {
    /** @type {Float32Array} */
    let h = rectify(norm('norm_h', times('W_h', features, rows), rows, iteration), of('mapping.bias_h'))
    const lateral = [h]
    for (let level = 1; level < levels; level++) {
      const z = norm(`ladder.norms_up.${level - 1}`, times(`ladder.encoder.${level - 1}`, h, rows), rows, iteration)
      const bias = of(`mapping.ladder.bias.${level - 1}`)
      const top = level === levels - 1 && softmaxTop
      h = top ? softmaxRows(z, bias, of('mapping.ladder.top_scale')) : rectify(z, bias)
      lateral.push(z)
    }
    const top = config.class_widths.length ? classHead(features, rows, iteration) : h.slice()
    /** @type {Float32Array} */
    let u = h
    for (let level = levels - 1; ; level--) {
      const normed = norm(`ladder.norms_down.${level}`, u, rows, iteration)
      const estimate = combine(lateral[level], normed, of(`mapping.ladder.combine.${level}.a`), stable)
      if (level === 0) {
        u = estimate
        break
      }
      u = times(`ladder.decoder.${level - 1}`, estimate, rows)
    }
    return { ...heads(times('W_u', u, rows), rows, iteration), top }
  }

  /** @param {Float32Array} both (R, 2N) @param {number} rows @param {number} iteration */
  function heads(both, rows, iteration) {
    const zPre = new Float32Array(rows * elements), mPre = new Float32Array(rows * elements)
    for (let r = 0; r < rows; r++) {
      zPre.set(both.subarray(2 * r * elements, (2 * r + 1) * elements), r * elements)
      mPre.set(both.subarray((2 * r + 1) * elements, (2 * r + 2) * elements), r * elements)
    }
    if (normalisedHeads) {
      norm('norm_z', zPre, rows, iteration)
      norm('norm_m', mPre, rows, iteration)
    }
    const scale = of('mapping.z_scale'), bias = of('mapping.z_bias'), mScale = of('mapping.m_scale')[0]
    for (let at = 0; at < zPre.length; at++) {
      zPre[at] = zPre[at] * scale[at % elements] + bias[at % elements]
      mPre[at] *= mScale
    }
    return { zPre, mPre }
  }
}
