/**
 * The Ladder, and the Ladder alone as TAG's mapping: rows of [z, m, delta z, L(m)] in, z and m before their activations
 * out. The twin of nets/ladder.py. R rows, one per group · F features · N elements, P positions
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 * @typedef {{zPre: Float32Array, mPre: Float32Array, top: Float32Array}} Mapped
 * @typedef {(features: Float32Array, rows: number, iteration: number) => Mapped} Mapping
 */
import { classHeadFor } from './class_head.js'
import { groupAttention } from './group_attention.js'
import { combinatorFor, hasNormalisedHeads, ladderWidths, rectify, softmaxRows } from './layers.js'

/**
 * Encoder up, decoder down: level 0 in, its reconstruction and the topmost representation out.
 *
 * @param {ModelConfig} config
 * @param {Layers} layers
 * @param {number} levels with level 0
 */
export function ladderFor(config, { of, times, norm }, levels) {
  const combine = combinatorFor(config, of)
  const softmaxTop = config.top === 'softmax' || (config.classes > 0 && !config.class_widths.length)

  /** @param {Float32Array} h (R, F) @param {number} rows @param {number} iteration */
  return function ladder(h, rows, iteration) {
    const lateral = [h]
    for (let level = 1; level < levels; level++) {
      const z = norm(`ladder.norms_up.${level - 1}`, times(`ladder.encoder.${level - 1}`, h, rows), rows, iteration)
      const bias = of(`ladder.bias.${level - 1}`)
      h = level === levels - 1 && softmaxTop ? softmaxRows(z, bias, of('ladder.top_scale')) : rectify(z, bias)
      lateral.push(z)
    }
    const top = h.slice()
    const denoised = (/** @type {number} */ level, /** @type {Float32Array} */ u) =>
      combine(`ladder.combine.${level}`, lateral[level], norm(`ladder.norms_down.${level}`, u, rows, iteration))
    let estimate = denoised(levels - 1, h)
    if (config.group_attention) groupAttention({ of, times }, lateral[levels - 1], rows).forEach((value, at) => (estimate[at] += value))
    for (let level = levels - 2; level >= 0; level--) {
      estimate = denoised(level, times(`ladder.decoder.${level}`, estimate, rows))
    }
    return { estimate, top }
  }
}

/** @param {ModelConfig} config @param {Layers} layers @returns {Mapping} */
export function ladderMapping(config, layers) {
  const { of, times, norm } = layers
  const positions = config.shape[0] * config.shape[1], elements = positions * config.channels
  const ladder = ladderFor(config, layers, ladderWidths(config).length)
  const classHead = classHeadFor(config, layers, elements, positions)

  return function mapping(features, rows, iteration) {
    const h = rectify(norm('norm_h', times('W_h', features, rows), rows, iteration), of('bias_h'))
    const { estimate, top } = ladder(h, rows, iteration)
    return { ...heads(times('W_u', estimate, rows), rows, iteration), top: classHead?.(features, rows, iteration) ?? top }
  }

  /** @param {Float32Array} both (R, N + P) @param {number} rows @param {number} iteration */
  function heads(both, rows, iteration) {
    const zPre = new Float32Array(rows * elements), mPre = new Float32Array(rows * positions)
    for (let r = 0; r < rows; r++) {
      const begin = r * (elements + positions), middle = begin + elements
      zPre.set(both.subarray(begin, middle), r * elements)
      mPre.set(both.subarray(middle, middle + positions), r * positions)
    }
    if (hasNormalisedHeads(config)) {
      norm('norm_z', zPre, rows, iteration)
      norm('norm_m', mPre, rows, iteration)
    }
    const scale = of('z_scale'), bias = of('z_bias'), mScale = of('m_scale')[0]
    for (let at = 0; at < zPre.length; at++) zPre[at] = zPre[at] * scale[at % elements] + bias[at % elements]
    for (let at = 0; at < mPre.length; at++) mPre[at] *= mScale
    return { zPre, mPre }
  }
}
