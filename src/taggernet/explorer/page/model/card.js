/**
 * The model's card, config.json: checked, with what version 0.1 did not write filled in.
 *
 * @typedef {{
 *   shape: number[], kind: 'binary' | 'real' | 'categorical', widths: number[], classes: number, norm: 'batch' | 'layer', noise: number,
 *   mean: number, feedback: string, delta_z: string, ratio_variance: string, gate: string, top: string, heads: string,
 *   norm_eps: number, offset: number, scale: number, class_widths: number[], class_input: string, class_conv_channels: number[],
 *   frozen_iterations: number, channels: number, mapping: string, conv_channels: number[], patch: number,
 *   group_attention: number, lateral: boolean, offsets: number[], scales: number[], masks: string, decoder: string,
 *   start_patch: number, start: string, tie: number, place_weight: number, start_apart: number, start_sizes: boolean, start_smooth: number,
 *   origin: string
 * }} ModelConfig
 * @typedef {{config: ModelConfig, groups: number, iterations: number, notes: Record<string, any>}} Card
 */
import { WAVES } from './broadcast.js'
import { levelSizes } from './conv.js'
import { SIDE } from './convolution.js'
import { PARTS } from './informed.js'
import { hasNormalisedHeads, ladderWidths } from './layers.js'

export const LONGEST_SIDE = 128
const LATER = { offset: 0, scale: 1, class_widths: [], class_input: 'features', class_conv_channels: [], frozen_iterations: 0, norm_eps: 1e-10,
  channels: 1, mapping: 'ladder', conv_channels: [], patch: 1, group_attention: 0, lateral: true, offsets: [], scales: [],
  masks: 'mapping', decoder: 'mirror', start_patch: 1, start: 'random', tie: 1, place_weight: 2, start_apart: 0, start_sizes: false, start_smooth: 1, origin: 'data' }
const RETIRED = ['start_correlated', 'levels', 'residual']
const NEEDED = ['shape', 'kind', 'widths', 'classes', 'norm', 'noise', 'mean', 'feedback', 'delta_z', 'ratio_variance',
  'gate', 'top', 'heads']

/**
 * @param {any} content what config.json holds
 * @param {string} source what to call it in an error
 * @returns {Card}
 */
export function readCard(content, source) {
  if (content?.format !== 1 || typeof content.model !== 'object' || content.model === null) {
    throw new Error(`${source} is not the card of a taggernet model: name the folder of one`)
  }
  const missing = NEEDED.filter((name) => !(name in content.model))
  if (missing.length) throw new Error(`${source} does not say ${missing.join(', ')}: copy it again`)
  /** @type {ModelConfig} */
  const config = { ...LATER, ...content.model }
  if (!Array.isArray(config.shape) || config.shape.length !== 2 || Math.max(...config.shape) > LONGEST_SIDE) {
    throw new Error(`the model's inputs have shape (${config.shape}): this page shows pictures of at most ${LONGEST_SIDE} a side`)
  }
  if (!['ladder', 'conv'].includes(config.mapping)) {
    throw new Error(`the model has mapping ${config.mapping}: this page knows ladder and conv; a newer one may know more`)
  }
  if (!['mirror', 'broadcast'].includes(config.decoder)) {
    throw new Error(`the model has decoder ${config.decoder}: this page knows mirror and broadcast; a newer one may know more`)
  }
  if (!['random', 'values', 'parts', 'places'].includes(config.start)) {
    throw new Error(`the model has start ${config.start}: this page knows random, values, parts and places; a newer one may know more`)
  }
  if (!['mapping', 'posterior', 'posterior-result'].includes(config.masks)) {
    throw new Error(`the model has masks ${config.masks}: this page knows mapping, posterior and posterior-result; a newer one may know more`)
  }
  const retired = RETIRED.find((name) => content.model[name])
  if (retired) {
    throw new Error(`${source}: ${retired} is an option of an earlier version that no longer exists: use the version that wrote it`)
  }
  if (config.norm === 'batch' && !config.frozen_iterations) {
    throw new Error('this BatchNorm model has no frozen statistics: open it with taggernet explore, which freezes them')
  }
  return { config, groups: content.groups ?? 4, iterations: content.iterations ?? 5, notes: content.card ?? {} }
}

/**
 * Every tensor that a model of this configuration has, with its shape.
 *
 * @param {ModelConfig} config
 * @returns {Map<string, number[]>}
 */
export function tensorShapes(config) {
  const positions = config.shape[0] * config.shape[1], elements = positions * config.channels
  const features = 2 * elements + 2 * positions
  const conv = config.mapping === 'conv'
  /** @type {Map<string, number[]>} */
  const shapes = new Map([['w', [1, 1, 1]], ['mapping.m_scale', [1, 1]]])
  if (config.start === 'parts') {
    shapes.set('start_quiet', [2, elements]).set('start_shapes', [PARTS, 2 * elements]).set('start_together', [PARTS, PARTS])
  }
  /** @type {[string, number][]} */
  const norms = []
  const widths = conv ? convShapes(config, shapes, norms) : ladderWidths(config)
  if (!conv) {
    shapes.set('mapping.W_h.weight', [features, widths[0]])
    shapes.set('mapping.W_u.weight', [widths[0], elements + positions])
    shapes.set('mapping.bias_h', [1, widths[0]])
    norms.push(['norm_h', widths[0]])
  }
  const [ofZ, ofM] = conv ? [config.channels, 1] : [elements, positions]
  shapes.set('mapping.z_scale', [1, ofZ])
  shapes.set('mapping.z_bias', [1, ofZ])
  if (hasNormalisedHeads(config)) norms.push(['norm_z', ofZ], ['norm_m', ofM])
  ladderShapes(config, widths, shapes, norms)
  if (config.class_widths.length) {
    const read = config.class_conv_channels.length ? classConvShapes(config, shapes, norms) : config.class_input === 'masks' ? positions : features
    const sizes = [read, ...config.class_widths, config.classes + 1]
    sizes.slice(1).forEach((width, level) => {
      shapes.set(`mapping.reader.layers.${level}.weight`, [sizes[level], width])
      shapes.set(`mapping.reader.biases.${level}`, [1, width])
      norms.push([`reader.norms.${level}`, width])
    })
    shapes.set('mapping.reader.scale', [1, config.classes + 1])
  }
  if (config.norm === 'batch') {
    for (const [name, width] of norms) {
      shapes.set(`mapping.${name}.mean`, [config.frozen_iterations, 1, width])
      shapes.set(`mapping.${name}.variance`, [config.frozen_iterations, 1, width])
    }
  }
  return shapes
}

/** @param {ModelConfig} config @param {string} name @param {number} width @param {Map<string, number[]>} shapes */
function combinatorShape(config, name, width, shapes) {
  if (config.lateral) shapes.set(`${name}.a`, [10, 1, width])
  else shapes.set(`${name}.bias`, [1, width])
}

/** @param {ModelConfig} config @param {number[]} widths @param {Map<string, number[]>} shapes @param {[string, number][]} norms */
function ladderShapes(config, widths, shapes, norms) {
  const ladder = config.decoder === 'broadcast' ? 'ladder.ladder' : 'ladder'
  const last = widths[widths.length - 1]
  widths.forEach((width, level) => {
    combinatorShape(config, `mapping.${ladder}.combine.${level}`, width, shapes)
    norms.push([`${ladder}.norms_down.${level}`, width])
    if (level === 0) return
    shapes.set(`mapping.${ladder}.encoder.${level - 1}.weight`, [widths[level - 1], width])
    shapes.set(`mapping.${ladder}.decoder.${level - 1}.weight`, [width, widths[level - 1]])
    shapes.set(`mapping.${ladder}.bias.${level - 1}`, [1, width])
    norms.push([`${ladder}.norms_up.${level - 1}`, width])
  })
  if (config.top === 'softmax' || (config.classes > 0 && !config.class_widths.length)) shapes.set(`mapping.${ladder}.top_scale`, [1, last])
  if (config.group_attention) {
    for (const part of ['query', 'key']) shapes.set(`mapping.${ladder}.attention.${part}.weight`, [last, config.group_attention])
    shapes.set(`mapping.${ladder}.attention.value.weight`, [last, last])
    shapes.set(`mapping.${ladder}.attention.gate`, [1, last])
  }
}

/** Those of the class head's convolutions. @param {ModelConfig} config @param {Map<string, number[]>} shapes @param {[string, number][]} norms @returns {number} how many numbers leave them */
function classConvShapes({ shape, class_conv_channels: levels }, shapes, norms) {
  const widths = [1, ...levels.flatMap((width) => [width, width])]
  widths.slice(1).forEach((width, number) => {
    shapes.set(`mapping.reader.convolutions.convolutions.${number}.weight`, [width, widths[number], SIDE, SIDE])
    shapes.set(`mapping.reader.convolutions.biases.${number}`, [1, width])
    norms.push([`reader.convolutions.norms.${number}`, width])
  })
  const [height, width] = shape.map((side) => Math.ceil(side / 2 ** levels.length))
  return height * width * levels[levels.length - 1]
}

/** Those of the convolutions. @param {ModelConfig} config @param {Map<string, number[]>} shapes @param {[string, number][]} norms @returns {number[]} the widths of the Ladder on top */
function convShapes(config, shapes, norms) {
  const { channels, patch, conv_channels: levels } = config, broadcast = config.decoder === 'broadcast'
  const kernel = (/** @type {string} */ name, /** @type {number} */ inputs, /** @type {number} */ outputs) =>
    shapes.set(`mapping.${name}.weight`, [outputs, inputs, SIDE, SIDE])
  levels.forEach((width, level) => {
    kernel(`up.${level}`, level ? levels[level - 1] : patch ** 2 * (2 * channels + 2), width)
    shapes.set(`mapping.bias.${level}`, [1, width])
    norms.push([`norms_up.${level}`, width])
    if (level === levels.length - 1) return
    kernel(`down.${level}`, levels[level + 1], broadcast ? width : 4 * width)
    combinatorShape(config, `mapping.combine.${level}`, width, shapes)
    norms.push([`norms_down.${level}`, width])
  })
  kernel('out', levels[0], (broadcast ? 1 : patch ** 2) * (channels + 1))
  const [height, width] = levelSizes(config)[levels.length - 1], last = levels[levels.length - 1]
  const coarsest = height * width * last, widths = ladderWidths(config)
  if (!broadcast) return [coarsest, ...widths]
  shapes.set('mapping.ladder.W_h.weight', [coarsest, widths[0]])
  shapes.set('mapping.ladder.bias_h', [1, widths[0]])
  shapes.set('mapping.ladder.W_u.weight', [widths[0], last])
  shapes.set('mapping.ladder.W_c.weight', [2 * WAVES, last])
  shapes.set('mapping.ladder.bias', [1, last])
  norms.push(['ladder.norm_h', widths[0]])
  return widths
}
