/**
 * What reads the classes beside the Ladder. The twin of nets/class_head.py.
 * R rows, one per group · N elements, P = H x W positions
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 */
import { convolved, normImages } from './convolution.js'
import { rectify, softmaxRows } from './layers.js'

/**
 * The classes, where a head beside the Ladder reads them; null where there is none.
 *
 * @param {ModelConfig} config
 * @param {Layers} layers
 * @param {number} elements
 * @param {number} positions
 */
export function classHeadFor(config, layers, elements, positions) {
  const { of, times, norm } = layers
  const last = config.class_widths.length
  if (!last) return null
  /** @param {Float32Array} features @param {number} rows @param {number} iteration */
  return function classHead(features, rows, iteration) {
    /** @type {Float32Array} */
    let h = features
    if (config.class_input === 'masks') {
      h = new Float32Array(rows * positions)
      for (let r = 0; r < rows; r++) {
        const begin = r * 2 * (elements + positions) + elements
        h.set(features.subarray(begin, begin + positions), r * positions)
      }
    }
    if (config.class_conv_channels.length) h = seenByConvolutions(config, layers, h, rows, iteration)
    for (let level = 0; level <= last; level++) {
      const z = norm(`reader.norms.${level}`, times(`reader.layers.${level}`, h, rows), rows, iteration)
      const bias = of(`reader.biases.${level}`)
      h = level === last ? softmaxRows(z, bias, of('reader.scale')) : rectify(z, bias)
    }
    return h
  }
}

/**
 * Masks after two convolutions on each level, the second of which halves height and width.
 *
 * @param {ModelConfig} config
 * @param {Layers} layers
 * @param {Float32Array} masks (R, P)
 * @param {number} rows
 * @param {number} iteration
 */
function seenByConvolutions(config, layers, masks, rows, iteration) {
  const [height, width] = config.shape
  let images = { data: masks, height, width, features: 1 }
  for (let number = 0; number < 2 * config.class_conv_channels.length; number++) {
    const made = convolved(layers, `reader.convolutions.convolutions.${number}`, images, rows, 1 + (number % 2))
    const z = normImages(config, layers, `reader.convolutions.norms.${number}`, made.data, rows, made.height * made.width, iteration)
    images = { ...made, data: rectify(z, layers.of(`reader.convolutions.biases.${number}`)) }
  }
  return images.data
}
