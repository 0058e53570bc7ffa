/**
 * What the visitor looks at: one scene, how it was grouped, and what is shown of it. Every part of the page reads this and
 * nothing else, so that no two of them disagree. It knows nothing of the page.
 *
 * @typedef {import('../model/tagger.js').Tagger} Tagger
 * @typedef {import('../model/tagger.js').State} State
 * @typedef {'test' | 'random' | 'own'} Source
 * @typedef {{
 *   source: Source, scene: any, objects: number, k: number, t: number, seed: number, noise: number,
 *   shown: number, hidden: Set<number>, removed: Set<number>
 * }} View
 * @typedef {{regrouped: boolean, live: boolean}} Change
 */
import { without } from '../model/tagger.js'
import { adjustedMutualInformation, foregroundRandIndex, labels } from '../scenes/ami.js'
import { corrupted } from '../scenes/noise.js'

export const MOST_GROUPS = 8
export const MOST_ITERATIONS = 10
/** Iterations per frame while a thing is dragged, each frame starting from the last one's state. */
export const LIVE_ITERATIONS = 2
/** Below this share of the ink that the groups give back, a picture counts as left blank. */
const BLANK = 0.1

/** Beyond these a view has to be grouped again. */
const GROUPED_BY = ['scene', 'k', 't', 'seed', 'noise']

export class Session {
  /** @param {Tagger} tagger @param {any} world @param {string} name */
  constructor(tagger, world, name) {
    this.tagger = tagger
    this.world = world
    this.name = name
    /** @type {((change: Change) => void)[]} */
    this.listeners = []
    /** @type {State[]} */
    this.history = []
    this.live = false
    /** @type {Partial<View> | null} what a challenge changed, as it was before */
    this.before = null
    this.milliseconds = 0
    // Nothing is grouped before the first view is set: a large model takes its time.
    this.view = { ...this.defaults(), shown: 0 }
    /** @type {import('../scenes/shapes.js').Painted} the scene, its truth */
    this.painted = world.paint(this.view.scene)
    /** @type {Float32Array} x as the network sees it */
    this.seen = this.painted.x
    this.history = [tagger.start(this.view.k, this.view.seed, tagger.inputs(this.seen))]
  }

  /** The view of a visitor who has not touched anything. @returns {View} */
  defaults() {
    const { world, tagger: { card } } = this
    const t = Math.min(card.iterations, MOST_ITERATIONS)
    return {
      source: world.count ? 'test' : 'own', scene: world.test(0), objects: Math.max(1, world.objects), k: Math.min(card.groups, MOST_GROUPS),
      t, seed: 0, noise: 0, shown: t, hidden: new Set(), removed: new Set(),
    }
  }

  /** @param {(change: Change) => void} listener */
  onChange(listener) {
    this.listeners.push(listener)
  }

  /** Change some of the view. What belongs to the old groups goes with them. @param {Partial<View>} patch */
  set(patch) {
    const before = this.view
    const view = { ...before, ...patch }
    const regroup = GROUPED_BY.some((name) => name in patch && patch[/** @type {keyof View} */ (name)] !== before[/** @type {keyof View} */ (name)])
    const others = view.scene !== before.scene || view.k !== before.k || view.seed !== before.seed
    if (others && !('hidden' in patch) && !('removed' in patch)) Object.assign(view, { hidden: new Set(), removed: new Set() })
    this.view = view
    if (regroup) {
      const atEnd = before.shown === this.history.length - 1
      this.regroup()
      if (!('shown' in patch)) view.shown = atEnd || others ? view.t : Math.min(before.shown, view.t)
    }
    view.shown = Math.max(0, Math.min(view.shown, this.history.length - 1))
    this.tell({ regrouped: regroup, live: false })
  }

  /** A scene with conditions of its own, which last until another scene is chosen. @param {Partial<View>} view */
  challenge(view) {
    const { k, t, seed, noise } = this.view
    this.before ??= { k, t, seed, noise }
    this.set({ ...view, source: 'own' })
  }

  /** Another scene: what a challenge changed is as it was before. @param {Partial<View>} patch */
  choose(patch) {
    const before = this.before ?? {}
    this.before = null
    this.set({ ...before, ...patch })
  }

  regroup() {
    this.look()
    const { k, t, seed } = this.view
    const begin = performance.now()
    this.history = this.tagger.group(this.seen, k, t, seed)
    this.milliseconds = performance.now() - begin
    this.live = false
  }

  /** x as the network sees it, and the truth. */
  look() {
    const { scene, noise, seed } = this.view
    this.painted = this.world.paint(scene)
    this.seen = corrupted(this.painted.x, noise, this.tagger.config, seed, (element) => this.tagger.scaleOf(element))
  }

  /** The scene a little changed: the groups go on from where they are; those that left it blank begin again. @param {any} scene */
  follow(scene) {
    const end = this.history.length - 1, again = this.leftBlank(end)
    this.view = { ...this.view, scene, source: /** @type {Source} */ ('own'), shown: LIVE_ITERATIONS }
    this.look()
    const begin = performance.now()
    const x = this.tagger.inputs(this.seen), at = Math.max(this.view.t, this.tagger.card.iterations)
    const last = again ? this.tagger.start(this.view.k, this.view.seed, x) : this.history[end]
    const prior = this.tagger.priorFrom(x, last, at, this.view.seed)
    this.history = [last]
    for (let i = 0; i < LIVE_ITERATIONS; i++) this.history.push(this.tagger.step(x, this.history[i], at, prior))
    this.milliseconds = performance.now() - begin
    this.live = true
    this.tell({ regrouped: true, live: true })
  }

  /** Groups from another start, also after dragging. */
  fresh() {
    this.set({ seed: this.view.seed + 1 })
  }

  /** A state with what was removed taken out. @param {number} iteration */
  stateAt(iteration) {
    return without(this.history[iteration], this.view.removed)
  }

  /** The state shown. */
  get state() {
    return this.stateAt(this.view.shown)
  }

  /** Whether the groups give back next to nothing of the ink, as if it were noise. @param {number} iteration */
  leftBlank(iteration) {
    const { kind, channels } = this.tagger.config
    return kind === 'binary' && givenBack(this.painted.x, this.history[iteration], channels) < BLANK
  }

  /** Hide or show a group. @param {number} group */
  hide(group) {
    const { hidden, removed } = this.view
    this.set({ hidden: toggled(hidden, group), removed: minus(removed, group) })
  }

  /** Remove a group, or bring it back; one group always stays. @param {number} group @returns {boolean} whether it could be */
  remove(group) {
    const { hidden, removed, k } = this.view
    const next = toggled(removed, group)
    if (next.size >= k) return false
    this.set({ removed: next, hidden: minus(hidden, group) })
    return true
  }

  /** AMI of the iteration shown, all groups present; null where there is no truth. */
  get ami() {
    return this.scored((truth, found) => adjustedMutualInformation(truth, found))
  }

  /** ARI of what is not background; null where no group is known to be the background. */
  get foregroundAri() {
    const { background } = this.world
    return background === null ? null : this.scored((truth, found) => foregroundRandIndex(truth, found, background))
  }

  /** @param {(truth: ArrayLike<number>, found: Uint8Array) => number | null} score */
  scored(score) {
    const { truth, scored } = this.painted, state = this.history[this.view.shown]
    return scored && truth ? score(truth, labels(state.m, state.groups)) : null
  }

  /** @param {Change} change */
  tell(change) {
    for (const listener of this.listeners) listener(change)
  }
}

/** The share of the ink that all groups together expect as well. @param {Float32Array} x @param {State} state @param {number} channels */
export function givenBack(x, { m, z, groups }, channels) {
  const positions = x.length / channels
  let drawn = 0, found = 0
  for (let at = 0; at < x.length; at++) {
    if (x[at] < 0.5) continue
    let expected = 0
    for (let k = 0; k < groups; k++) expected += m[k * positions + Math.floor(at / channels)] * z[k * x.length + at]
    drawn += 1
    found += Number(expected > 0.5)
  }
  return drawn ? found / drawn : 1
}

/** @param {Set<number>} set @param {number} item */
function toggled(set, item) {
  return set.has(item) ? minus(set, item) : new Set([...set, item])
}

/** @param {Set<number>} set @param {number} item */
function minus(set, item) {
  return new Set([...set].filter((other) => other !== item))
}
