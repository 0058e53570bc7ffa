/**
 * Convolutions around a Ladder as TAG's mapping. The twin of nets/conv.py.
 * R rows, one per group · P = H x W positions · C channels
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 * @typedef {import('./convolution.js').Images} Images
 */
import { broadcastFor } from './broadcast.js'
import { classHeadFor } from './class_head.js'
import { convolved, foldPatches, normImages, unfoldPatches } from './convolution.js'
import { ladderFor } from './ladder.js'
import { combinatorFor, hasNormalisedHeads, ladderWidths, rectify } from './layers.js'

/** Height and width of each level. @param {ModelConfig} config */
export function levelSizes({ shape, patch, conv_channels: levels }) {
  return levels.map((_, level) => shape.map((side) => Math.ceil(Math.ceil(side / patch) / 2 ** level)))
}

/** @param {ModelConfig} config @param {Layers} layers @returns {import('./ladder.js').Mapping} */
export function convMapping(config, layers) {
  const { of } = layers, { shape: [height, width], channels, patch, conv_channels: levels } = config
  const positions = height * width, elements = positions * channels
  const sizes = levelSizes(config), combine = combinatorFor(config, of)
  const broadcast = config.decoder === 'broadcast', [coarseHeight, coarseWidth] = sizes[levels.length - 1]
  const ladder = broadcast
    ? broadcastFor(config, layers, coarseHeight, coarseWidth)
    : ladderFor(config, layers, 1 + ladderWidths(config).length)
  const classHead = classHeadFor(config, layers, elements, positions)
  const norm = (/** @type {string} */ name, /** @type {Float32Array} */ x, /** @type {number} */ rows, /** @type {number} */ area, /** @type {number} */ iteration) =>
    normImages(config, layers, name, x, rows, area, iteration)

  return function mapping(features, rows, iteration) {
    let images = foldPatches(asImages(features, rows), rows, patch)
    /** @type {Float32Array[]} */
    const lateral = []
    levels.forEach((_, level) => {
      const up = convolved(layers, `up.${level}`, images, rows, level ? 2 : 1)
      const z = norm(`norms_up.${level}`, up.data, rows, up.height * up.width, iteration)
      lateral.push(z)
      images = { ...up, data: rectify(z, of(`bias.${level}`)) }
    })
    const { estimate, top } = ladder(images.data, rows, iteration)
    images = { ...images, data: estimate }
    for (let level = levels.length - 2; level >= 0; level--) {
      const [h, w] = sizes[level]
      const down = finer(`down.${level}`, images, rows, 2, h, w)
      const u = norm(`norms_down.${level}`, down.data, rows, h * w, iteration)
      images = { ...down, data: combine(`combine.${level}`, lateral[level], u) }
    }
    const out = finer('out', images, rows, patch, height, width)
    return { ...heads(out.data, rows, iteration), top: classHead?.(features, rows, iteration) ?? top }
  }

  /** A convolution on the way down, which makes a patch of every position. @param {string} name @param {Images} images @param {number} rows @param {number} side @param {number} h @param {number} w */
  function finer(name, images, rows, side, h, w) {
    return unfoldPatches(convolved(layers, name, images, rows), rows, side, h, w)
  }

  /** [z, m, delta z, L(m)] as the features of an image's positions. @param {Float32Array} features @param {number} rows @returns {Images} */
  function asImages(features, rows) {
    const deep = 2 * channels + 2, data = new Float32Array(features.length)
    const parts = [[0, channels], [elements, 1], [elements + positions, channels], [2 * elements + positions, 1]]
    for (let r = 0; r < rows; r++) {
      let first = 0
      for (const [begin, each] of parts) {
        const from = r * deep * positions + begin
        for (let p = 0; p < positions; p++) {
          for (let c = 0; c < each; c++) data[(r * positions + p) * deep + first + c] = features[from + p * each + c]
        }
        first += each
      }
    }
    return { data, height, width, features: deep }
  }

  /** @param {Float32Array} both (R, P, C + 1) @param {number} rows @param {number} iteration */
  function heads(both, rows, iteration) {
    const zPre = new Float32Array(rows * elements), mPre = new Float32Array(rows * positions)
    for (let at = 0; at < mPre.length; at++) {
      const begin = at * (channels + 1)
      for (let c = 0; c < channels; c++) zPre[at * channels + c] = both[begin + c]
      mPre[at] = both[begin + channels]
    }
    if (hasNormalisedHeads(config)) {
      norm('norm_z', zPre, rows, positions, iteration)
      norm('norm_m', mPre, rows, positions, iteration)
    }
    const scale = of('z_scale'), bias = of('z_bias'), mScale = of('m_scale')[0]
    for (let at = 0; at < zPre.length; at++) zPre[at] = zPre[at] * scale[at % channels] + bias[at % channels]
    for (let at = 0; at < mPre.length; at++) mPre[at] *= mScale
    return { zPre, mPre }
  }
}
