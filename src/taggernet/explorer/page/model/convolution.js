/**
 * Convolutions of images, channels last, and patches of positions. The twin of nets/convolution.py.
 * R rows, one per group · images (R, H, W, F)
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 * @typedef {{data: Float32Array, height: number, width: number, features: number}} Images
 */
/** Height and width of a kernel. */
export const SIDE = 3

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
export function convolved({ times }, name, { data, height, width, features }, rows, stride = 1) {
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

/**
 * Normalise images in place. BatchNorm: every position is a row; LayerNorm: the whole image is one.
 *
 * @param {ModelConfig} config
 * @param {Layers} layers
 * @param {string} name
 * @param {Float32Array} x
 * @param {number} rows
 * @param {number} area
 * @param {number} iteration
 */
export function normImages(config, layers, name, x, rows, area, iteration) {
  return layers.norm(name, x, config.norm === 'batch' ? rows * area : rows, iteration)
}
