/**
 * A Tagger: the start (tag/start.py) and one iteration (tag/grouping.py), and its loading.
 * K groups · P positions · C channels · N = P C elements · z (K, N) · m (K, P)
 *
 * @typedef {import('./card.js').Card} Card
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./safetensors.js').Tensor} Tensor
 * @typedef {{
 *   groups: number, z: Float32Array, m: Float32Array, fed: Float32Array, mPre: Float32Array, top: Float32Array | null,
 *   fedM?: Float32Array
 * }} State m is what is shown; the mapping sees fedM next where it differs
 * @typedef {{deltaZ: Float32Array, ratio: Float32Array}} Evidence
 */
import { readCard, tensorShapes } from './card.js'
import { convMapping } from './conv.js'
import { kernelMatrix } from './convolution.js'
import { byParts, byPlaces, byValue, inOrderOf, medians, partsOf } from './informed.js'
import { ladderMapping } from './ladder.js'
import { layersOf } from './layers.js'
import { likelihoodFor, softmaxOverGroups } from './likelihood.js'
import { products } from './products.js'
import { Key } from './rng.js'
import { readWeights } from './safetensors.js'

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
    this.positions = this.config.shape[0] * this.config.shape[1]
    this.elements = this.positions * this.config.channels
    this.how = made.how
    /** @type {{groups: number, seed: number, random: Float32Array, z: Float32Array} | null} the last random numbers, and z */
    this.drawn = null
    this.informed = informedStart(this.config, tensors)
    /** Whether all masks are tied to the first ones. */
    this.tied = this.config.start !== 'random' && this.config.tie > 0
    const w = /** @type {Tensor} */ (tensors.get('w')).data[0]
    this.mapping = (this.config.mapping === 'conv' ? convMapping : ladderMapping)(this.config, layersOf(this.config, tensors, made))
    this.likelihood = likelihoodFor(this.config, Math.exp(Math.asinh(w)))
  }

  /**
   * @param {ArrayBuffer} weights model.safetensors
   * @param {any} card what config.json holds
   * @param {{plain?: boolean}} [options]
   */
  static async from(weights, card, { plain = false } = {}) {
    const read = readCard(card, 'config.json')
    const tensors = readWeights(weights, 'model.safetensors')
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
    const matrices = [...tensors].filter(([name]) => name.endsWith('.weight'))
      .map(([name, weight]) => /** @type {[string, Tensor]} */ ([name, weight.shape.length === 4 ? kernelMatrix(read.config, name, weight) : weight]))
    return new Tagger(read, tensors, await products(new Map(matrices), plain))
  }

  /** x in the model's units. @param {ArrayLike<number>} x */
  inputs(x) {
    return Float32Array.from(x, (value, at) => (value - this.offsetOf(at)) / this.scaleOf(at))
  }

  /** Where the model's 0 lies in the user's units, at an element. @param {number} element */
  offsetOf(element) {
    const { offset, offsets } = this.config
    return offsets.length ? offsets[element] : offset
  }

  /** How long the model's 1 is there. @param {number} element */
  scaleOf(element) {
    const { scale, scales } = this.config
    return scales.length ? scales[element] : scale
  }

  /** z, one number for each element of each group, in the user's units. @param {Float32Array} z */
  outputs(z) {
    const n = this.elements
    return z.map((value, at) => value * this.scaleOf(at % n) + this.offsetOf(at % n))
  }

  /**
   * Masks from standard normals, alone or with what they find in x; z at the data's mean: as `group(x, seed=seed)` starts.
   *
   * @param {number} groups
   * @param {number} seed
   * @param {Float32Array} x in the model's units
   * @returns {State}
   */
  start(groups, seed, x) {
    const { random, z: fed } = this.draw(groups, seed), mPre = this.informed(x, random)
    return { groups, z: this.fromOrigin(fed, x), m: softmaxOverGroups(mPre, groups), fed, mPre, top: null }
  }

  /** z out of what is relative to the scene's median, or to nothing. @param {Float32Array} z @param {Float32Array} x */
  fromOrigin(z, x) {
    if (this.config.origin !== 'scene') return z
    const { channels } = this.config, median = medians(x, channels)
    return z.map((value, at) => value + median[at % channels])
  }

  /** What is random in a start, and its z. @param {number} groups @param {number} seed */
  draw(groups, seed) {
    if (this.drawn?.groups === groups && this.drawn.seed === seed) return this.drawn
    const { kind, channels, mean } = this.config
    const random = inPatches(Key.of(seed).fold('masks').normal(groups * this.positions), this.config)
    const z = new Float32Array(groups * this.elements).fill(kind === 'categorical' ? 1 / channels : mean)
    return (this.drawn = { groups, seed, random, z })
  }

  /** The prior of an iteration's masks, before its softmax; null: none. @param {Float32Array} first masks @param {number} iteration from 1 */
  prior(first, iteration) {
    return this.tied ? first.map((value) => this.config.tie ** (iteration - 1) * value) : null
  }

  /**
   * That of a scene which changed a little, for groups that go on from a state.
   *
   * @param {Float32Array} x in the model's units
   * @param {State} state
   * @param {number} iteration
   * @param {number} seed
   */
  priorFrom(x, { groups, m }, iteration, seed) {
    return this.tied ? this.prior(inOrderOf(this.start(groups, seed, x).mPre, m, groups), iteration) : null
  }

  /** delta z and L(m) of every group. @param {Float32Array} x @param {State} state @returns {Evidence} */
  evidence(x, state) {
    return this.likelihood.evidence(x, state.z, state.fedM ?? state.m, state.groups)
  }

  /**
   * One iteration.
   *
   * @param {Float32Array} x in the model's units
   * @param {State} state
   * @param {number} iteration from 1
   * @param {Float32Array | null} prior of the masks, before its softmax
   * @returns {State}
   */
  step(x, state, iteration, prior) {
    const { groups, fed } = state, m = state.fedM ?? state.m
    const { deltaZ, ratio } = this.evidence(x, state)
    const features = new Float32Array(groups * 2 * (this.elements + this.positions))
    for (let k = 0, to = 0; k < groups; k++) {
      for (const part of [fed, m, deltaZ, ratio]) {
        const size = part.length / groups
        features.set(part.subarray(k * size, (k + 1) * size), to)
        to += size
      }
    }
    const { zPre, mPre: mapped, top } = this.mapping(features, groups, iteration)
    const mean = this.likelihood.mean(zPre), z = this.fromOrigin(mean, x)
    const evidence = this.config.masks === 'posterior' ? this.likelihood.logEvidence(x, z) : null
    const mPre = prior || evidence ? mapped.map((value, at) => value + (prior?.[at] ?? 0) + (evidence?.[at] ?? 0)) : mapped
    const found = { groups, z, m: softmaxOverGroups(mPre, groups), fed: this.likelihood.fedBack(zPre, mean), mPre, top }
    return this.config.masks === 'posterior-result' ? this.asResult(x, found) : found
  }

  /** The posterior masks in the place of those of the loop, which goes on from its own. @param {Float32Array} x @param {State} state @returns {State} */
  asResult(x, state) {
    const evidence = this.likelihood.logEvidence(x, state.z), mPre = state.mPre.map((value, at) => value + evidence[at])
    return { ...state, m: softmaxOverGroups(mPre, state.groups), mPre, fedM: state.m }
  }

  /** The start and the states after iterations 1 .. T. @returns {State[]} */
  group(/** @type {ArrayLike<number>} */ x, /** @type {number} */ groups, /** @type {number} */ iterations, seed = 0) {
    const inputs = this.inputs(x), history = [this.start(groups, seed, inputs)]
    for (let i = 1; i <= iterations; i++) history.push(this.step(inputs, history[i - 1], i, this.prior(history[0].mPre, i)))
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

/** Every position with the number of its patch's first. @param {Float32Array} mPre @param {ModelConfig} config */
function inPatches(mPre, { shape: [height, width], start_patch: side }) {
  return mPre.map((_, at) => {
    const row = Math.floor(at / width) % height, column = at % width
    return mPre[at - (row % side) * width - (column % side)]
  })
}

/** The state with the masks that the network sees, where others are shown. @param {State} state @returns {State} */
export const asFed = (state) => (state.fedM ? { ...state, m: state.fedM } : state)

/** The state with some groups taken away: the others fill in what they hid. @param {State} state @param {Set<number>} groups */
export function without(state, groups) {
  if (!groups.size) return state
  const n = state.m.length / state.groups
  const mPre = state.mPre.map((value, at) => (groups.has(Math.floor(at / n)) ? ASSIGNED_NEVER : value))
  return { ...state, mPre, m: softmaxOverGroups(mPre, state.groups) }
}

/**
 * What makes first masks, before their softmax, of a scene in the model's units and random numbers.
 *
 * @param {import('./card.js').ModelConfig} config
 * @param {Map<string, Tensor>} tensors
 * @returns {(x: Float32Array, random: Float32Array) => Float32Array}
 */
function informedStart({ start, channels, shape, place_weight: weight, start_apart: apart, start_sizes: sizes, start_smooth: smooth }, tensors) {
  if (start === 'values') return (x, random) => byValue(x, random, channels)
  if (start === 'parts') {
    const parts = partsOf(tensors)
    return (x, random) => byParts(x, random, channels, parts)
  }
  if (start === 'places') return (x, random) => byPlaces(x, random, channels, shape, { weight, apart, sizes, smooth })
  return (x, random) => random
}
