/**
 * Convolutions around a Ladder as TAG's mapping. The twin of nets/conv.py.
 * R rows, one per group · P = H x W positions · C channels · images (R, H, W, F), channels last
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 * @typedef {{data: Float32Array, height: number, width: number, features: number}} Images
 */
import { broadcastFor } from './broadcast.js'
import { classHeadFor, ladderFor } from './ladder.js'
import { combinatorFor, hasNormalisedHeads, ladderWidths, rectify } from './layers.js'

/** Height and width of every kernel. */
export const SIDE = 3
const half = (/** @type {number} */ side, times = 1) => Math.ceil(side / 2 ** times)

/** Height and width of each level. @param {ModelConfig} config */
export function levelSizes({ shape, patch, conv_channels: levels }) {
  return levels.map((_, level) => shape.map((side) => half(Math.ceil(side / patch), level)))
}

/**
 * A convolution's weights as a matrix; on the way down of the broadcast decoder, that of the enlarging convolution.
 *
 * @param {ModelConfig} config
 * @param {string} name
 * @param {import('./safetensors.js').Tensor} weight
 */
export function kernelMatrix({ decoder, patch }, name, weight) {
  const times = name.startsWith('mapping.down.') ? 2 : name === 'mapping.out.weight' ? patch : 1
  return asMatrix(decoder === 'broadcast' && times > 1 ? enlarging(weight, times) : weight)
}

/**
 * Kernels that make a patch of times x times outputs of every position, as the given ones do of an enlarged image: in each,
 * the weights are added up that fall on the same position.
 *
 * @param {import('./safetensors.js').Tensor} weight (outputs, inputs, 3, 3)
 * @param {number} times
 * @returns {import('./safetensors.js').Tensor}
 */
function enlarging({ shape: [outputs, inputs], data }, times) {
  const places = SIDE * SIDE, kernels = new Float32Array(times * times * data.length)
  const seen = (/** @type {number} */ output, /** @type {number} */ at) => Math.floor((output + at - 1) / times) + 1
  for (let patch = 0; patch < times * times; patch++) {
    const y = Math.floor(patch / times), x = patch % times
    for (let pair = 0; pair < outputs * inputs; pair++) {
      for (let place = 0; place < places; place++) {
        const to = seen(y, Math.floor(place / SIDE)) * SIDE + seen(x, place % SIDE)
        kernels[(patch * outputs * inputs + pair) * places + to] += data[pair * places + place]
      }
    }
  }
  return { shape: [times * times * outputs, inputs, SIDE, SIDE], data: kernels }
}

/**
 * A convolution's weights (outputs, inputs, 3, 3) as a matrix whose rows are those of a patch, (3 3 inputs, outputs).
 *
 * @param {import('./safetensors.js').Tensor} weight
 * @returns {import('./safetensors.js').Tensor}
 */
function asMatrix({ shape: [outputs, inputs], data }) {
  const places = SIDE * SIDE, matrix = new Float32Array(data.length)
  for (let o = 0; o < outputs; o++) {
    for (let i = 0; i < inputs; i++) {
      for (let place = 0; place < places; place++) matrix[(place * inputs + i) * outputs + o] = data[(o * inputs + i) * places + place]
    }
  }
  return { shape: [places * inputs, outputs], data: matrix }
}

/**
 * A 3 x 3 convolution with zeros around the images.
 *
 * @param {Layers} layers
 * @param {string} name
 * @param {Images} images
 * @param {number} rows
 * @param {number} [stride]
 * @returns {Images}
 */
function convolved({ times }, name, { data, height, width, features }, rows, stride = 1) {
  const pitch = (width + 2) * features
  const framed = new Float32Array(rows * (height + 2) * pitch)
  for (let line = 0; line < rows * height; line++) {
    const row = Math.floor(line / height), y = line % height
    framed.set(data.subarray(line * width * features, (line + 1) * width * features), (row * (height + 2) + y + 1) * pitch + features)
  }
  const h = Math.ceil(height / stride), w = Math.ceil(width / stride)
  const starts = new Int32Array(rows * h * w)
  for (let at = 0; at < starts.length; at++) {
    const row = Math.floor(at / (h * w)), y = Math.floor(at / w) % h, x = at % w
    starts[at] = (row * (height + 2) + y * stride) * pitch + x * stride * features
  }
  const out = times(name, framed, starts.length, { starts, lines: SIDE, length: SIDE * features, pitch })
  return { data: out, height: h, width: w, features: out.length / starts.length }
}

/** Where each position of an image lies once its patches are folded. @param {number} height @param {number} width @param {number} side */
function foldedPlaces(height, width, side) {
  const w = Math.ceil(width / side)
  return Int32Array.from({ length: height * width }, (_, at) => {
    const y = Math.floor(at / width), x = at % width
    return (Math.floor(y / side) * w + Math.floor(x / side)) * side * side + (y % side) * side + (x % side)
  })
}

/** Every patch of side x side positions becomes one position with as many times the features. @param {Images} images @param {number} rows @param {number} side @returns {Images} */
export function foldPatches(images, rows, side) {
  if (side === 1) return images
  const { data, height, width, features } = images, h = Math.ceil(height / side), w = Math.ceil(width / side)
  const places = foldedPlaces(height, width, side), area = h * w * side * side
  const folded = new Float32Array(rows * area * features)
  for (let row = 0, from = 0; row < rows; row++) {
    for (const place of places) {
      for (let f = 0, to = (row * area + place) * features; f < features; f++) folded[to++] = data[from++]
    }
  }
  return { data: folded, height: h, width: w, features: side * side * features }
}

/** The inverse of foldPatches, cut to a height and width. @param {Images} patches @param {number} rows @param {number} side @param {number} height @param {number} width @returns {Images} */
export function unfoldPatches(patches, rows, side, height, width) {
  if (side === 1) return patches
  const { data, height: h, width: w } = patches, features = patches.features / side ** 2
  const places = foldedPlaces(height, width, side), area = h * w * side * side
  const images = new Float32Array(rows * height * width * features)
  for (let row = 0, to = 0; row < rows; row++) {
    for (const place of places) {
      for (let f = 0, from = (row * area + place) * features; f < features; f++) images[to++] = data[from++]
    }
  }
  return { data: images, height, width, features }
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
  /** BatchNorm: every position is a row; LayerNorm: the whole image is one. */
  const norm = (/** @type {string} */ name, /** @type {Float32Array} */ x, /** @type {number} */ rows, /** @type {number} */ area, /** @type {number} */ iteration) =>
    layers.norm(name, x, config.norm === 'batch' ? rows * area : rows, iteration)

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
