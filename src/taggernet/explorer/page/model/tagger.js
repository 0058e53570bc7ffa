/**
 * A Tagger: the random start and one iteration (tag/grouping.py), and its loading.
 * K groups · N elements · z, m (K, N)
 *
 * @typedef {import('./card.js').Card} Card
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{
 *   groups: number, z: Float32Array, m: Float32Array, fed: Float32Array, mPre: Float32Array, top: Float32Array | null
 * }} State
 * @typedef {{deltaZ: Float32Array, ratio: Float32Array}} Evidence
 */
import { readCard, tensorShapes } from './card.js'
import { ladderFor } from './ladder.js'
import { likelihoodFor, softmaxOverGroups } from './likelihood.js'
import { products } from './products.js'
import { Key } from './rng.js'
import { readTensors } from './safetensors.js'

/** Whether no value is NaN or infinite. @param {Float32Array} values */
function allFinite(values) {
  for (let at = 0; at < values.length; at++) if (values[at] - values[at] !== 0) return false
  return true
}

/** Mask pre-activation that takes a group out of the softmax (paper, example E2). */
const ASSIGNED_NEVER = -1e4

export class Tagger {
  /**
   * @param {Card} card
   * @param {Map<string, Tensor>} tensors
   * @param {import('./products.js').Products} made
   */
  constructor(card, tensors, made) {
    this.card = card
    this.config = card.config
    this.elements = this.config.shape[0] * this.config.shape[1]
    this.how = made.how
    /** @type {{groups: number, seed: number, state: State} | null} the last random start */
    this.started = null
    const w = /** @type {Tensor} */ (tensors.get('w')).data[0]
    this.mapping = ladderFor(this.config, tensors, made)
    this.likelihood = likelihoodFor(this.config, Math.exp(Math.asinh(w)))
  }

  /**
   * @param {ArrayBuffer} weights model.safetensors
   * @param {any} card what config.json holds
   * @param {{plain?: boolean}} [options]
   */
  static async from(weights, card, { plain = false } = {}) {
    const read = readCard(card, 'config.json')
    const tensors = readTensors(weights, 'model.safetensors')
    for (const [name, shape] of tensorShapes(read.config)) {
      const found = tensors.get(name)
      if (!found) throw new Error(`model.safetensors has no ${name}, which its card asks for: copy the model again`)
      if (String(found.shape) !== String(shape)) {
        throw new Error(`model.safetensors: ${name} has shape (${found.shape}), but its card says (${shape})`)
      }
      if (!allFinite(found.data)) {
        throw new Error(`model.safetensors: ${name} holds NaN or infinite values: train or copy the model again`)
      }
    }
    const matrices = new Map([...tensors].filter(([name]) => name.endsWith('.weight')))
    return new Tagger(read, tensors, await products(matrices, plain))
  }

  /** x in the model's units. @param {ArrayLike<number>} x */
  inputs(x) {
    const { offset, scale } = this.config
    return Float32Array.from(x, (value) => (value - offset) / scale)
  }

  /** m from a softmax of standard normals, z at the data's mean: as `group(x, seed=seed)` starts. @returns {State} */
  start(/** @type {number} */ groups, /** @type {number} */ seed) {
    if (this.started?.groups === groups && this.started.seed === seed) return this.started.state
    const mPre = Key.of(seed).fold('masks').normal(groups * this.elements)
    const z = startLevels(mPre, groups, this.config.levels).map((level) => this.config.mean + level)
    const state = { groups, z, m: softmaxOverGroups(mPre, groups), fed: z, mPre, top: null }
    this.started = { groups, seed, state }
    return state
  }

  /** delta z and L(m) of every group. @param {Float32Array} x @param {State} state @returns {Evidence} */
  evidence(x, state) {
    return this.likelihood.evidence(x, state.z, state.m, state.groups)
  }

  /**
   * One iteration.
   *
   * @param {Float32Array} x in the model's units
   * @param {State} state
   * @param {number} iteration from 1
   * @returns {State}
   */
  step(x, state, iteration) {
    const n = this.elements, { groups, fed, m } = state
    const { deltaZ, ratio } = this.evidence(x, state)
    const features = new Float32Array(groups * 4 * n)
    for (let k = 0; k < groups; k++) {
      ;[fed, m, deltaZ, ratio].forEach((part, i) => features.set(part.subarray(k * n, (k + 1) * n), (4 * k + i) * n))
    }
    const { residual, masks } = this.config
    const { zPre: change, mPre: prior, top } = this.mapping(features, groups, iteration)
    const zPre = residual ? change.map((value, at) => fed[at] + residual * value) : change
    const z = this.likelihood.mean(zPre)
    const mPre = masks === 'posterior' ? this.likelihood.logEvidence(x, z).map((value, at) => prior[at] + value) : prior
    return { groups, z, m: softmaxOverGroups(mPre, groups), fed: this.likelihood.fedBack(zPre, z), mPre, top }
  }

  /** The random start and the states after iterations 1 .. T. @returns {State[]} */
  group(/** @type {ArrayLike<number>} */ x, /** @type {number} */ groups, /** @type {number} */ iterations, seed = 0) {
    const inputs = this.inputs(x), history = [this.start(groups, seed)]
    for (let i = 1; i <= iterations; i++) history.push(this.step(inputs, history[i - 1], i))
    return history
  }

  /** Each group's share of the class probabilities, (K, C); null without classes. @param {State} state */
  classShares(state) {
    const { classes } = this.config
    if (!classes || !state.top) return null
    const shares = new Float32Array(state.groups * classes)
    let total = 0
    for (let k = 0; k < state.groups; k++) {
      for (let c = 0; c < classes; c++) total += shares[k * classes + c] = state.top[k * (classes + 1) + c]
    }
    return shares.map((share) => share / Math.max(total, 1e-30))
  }
}

/**
 * How far from the mean each group's z starts, read from its random mask. @param {Float32Array} mPre
 * @param {number} groups @param {number} spread
 */
function startLevels(mPre, groups, spread) {
  const n = mPre.length / groups, levels = new Float32Array(groups)
  if (spread) mPre.forEach((value, at) => { levels[Math.floor(at / n)] += (spread * value) / Math.sqrt(n) })
  const middle = levels.reduce((sum, level) => sum + level, 0) / groups
  return mPre.map((_, at) => levels[Math.floor(at / n)] - middle)
}

/** The state with some groups taken away: the others fill in what they hid. @param {State} state @param {Set<number>} groups */
export function without(state, groups) {
  if (!groups.size) return state
  const n = state.m.length / state.groups
  const mPre = state.mPre.map((value, at) => (groups.has(Math.floor(at / n)) ? ASSIGNED_NEVER : value))
  return { ...state, mPre, m: softmaxOverGroups(mPre, state.groups) }
}
