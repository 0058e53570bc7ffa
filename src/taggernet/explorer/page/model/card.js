/**
 * The model's card, config.json: checked, with what version 0.1 did not write filled in.
 *
 * @typedef {{
 *   shape: number[], kind: 'binary' | 'real', widths: number[], classes: number, norm: 'batch' | 'layer', noise: number,
 *   mean: number, feedback: string, delta_z: string, ratio_variance: string, gate: string, top: string, heads: string,
 *   norm_eps: number, offset: number, scale: number, class_widths: number[], class_input: string,
 *   frozen_iterations: number, channels: number, mapping: string, group_attention: number, masks: string,
 *   levels: number, residual: number
 * }} ModelConfig
 * @typedef {{config: ModelConfig, groups: number, iterations: number, notes: Record<string, any>}} Card
 */

export const LONGEST_SIDE = 128
const LATER = { offset: 0, scale: 1, class_widths: [], class_input: 'features', frozen_iterations: 0, norm_eps: 1e-10,
  channels: 1, mapping: 'ladder', group_attention: 0, masks: 'mapping', levels: 0, residual: 0 }
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
  if (config.channels > 1) throw new Error(`the model's inputs have ${config.channels} channels: this page shows pictures of one`)
  if (config.mapping !== 'ladder') throw new Error(`the model has mapping ${config.mapping}: this page runs the Ladder only`)
  if (config.group_attention) throw new Error('the model has group_attention: this page runs models without that')
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
  const elements = config.shape[0] * config.shape[1]
  const onTop = config.classes > 0 && !config.class_widths.length
  const widths = onTop ? [...config.widths, config.classes + 1] : config.widths
  const normalisedHeads = config.heads === 'auto' ? config.norm === 'batch' : config.heads === 'normalised'
  /** @type {Map<string, number[]>} */
  const shapes = new Map([
    ['w', [1, 1, 1]],
    ['mapping.W_h.weight', [4 * elements, widths[0]]],
    ['mapping.W_u.weight', [widths[0], 2 * elements]],
    ['mapping.bias_h', [1, widths[0]]],
    ['mapping.z_scale', [1, elements]],
    ['mapping.z_bias', [1, elements]],
    ['mapping.m_scale', [1, 1]],
  ])
  const norms = [['norm_h', widths[0]]]
  if (normalisedHeads) norms.push(['norm_z', elements], ['norm_m', elements])
  widths.forEach((width, level) => {
    shapes.set(`mapping.ladder.combine.${level}.a`, [10, 1, width])
    norms.push([`ladder.norms_down.${level}`, width])
    if (level === 0) return
    shapes.set(`mapping.ladder.encoder.${level - 1}.weight`, [widths[level - 1], width])
    shapes.set(`mapping.ladder.decoder.${level - 1}.weight`, [width, widths[level - 1]])
    shapes.set(`mapping.ladder.bias.${level - 1}`, [1, width])
    norms.push([`ladder.norms_up.${level - 1}`, width])
  })
  if (onTop || config.top === 'softmax') shapes.set('mapping.ladder.top_scale', [1, widths[widths.length - 1]])
  if (config.class_widths.length) {
    const sizes = [(config.class_input === 'masks' ? 1 : 4) * elements, ...config.class_widths, config.classes + 1]
    sizes.slice(1).forEach((width, level) => {
      shapes.set(`mapping.reader.layers.${level}.weight`, [sizes[level], width])
      shapes.set(`mapping.reader.biases.${level}`, [1, width])
      norms.push([`reader.norms.${level}`, width])
    })
    shapes.set('mapping.reader.scale', [1, config.classes + 1])
  }
  if (config.norm === 'batch') {
    for (const [name, width] of norms) {
      shapes.set(`mapping.${name}.mean`, [config.frozen_iterations, 1, Number(width)])
      shapes.set(`mapping.${name}.variance`, [config.frozen_iterations, 1, Number(width)])
    }
  }
  return shapes
}
