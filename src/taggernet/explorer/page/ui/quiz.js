/**
 * The paper's informal test of human subjects: name the two digits. Both sides are scored by the same rule.
 * This module knows nothing of the page.
 *
 * @typedef {{seed: number, position: number, answered: boolean, scenes: number, you: number, network: number}} Round
 */
import { Key } from '../model/rng.js'

/** The best of the paper's five subjects, after days of practice and with more than 30 seconds a scene. */
export const BEST_HUMAN = 0.3
const STORED = 'taggernet-human-test'

/**
 * The share of the two true digits that is missing from the answer; where both are the same, whether the first one named
 * is right.
 *
 * @param {number[]} answer one or two digits, in the order named
 * @param {number[]} truth
 */
export function errorOf(answer, truth) {
  if (truth[0] === truth[1]) return answer[0] === truth[0] ? 0 : 1
  return truth.filter((digit) => !answer.slice(0, 2).includes(digit)).length / 2
}

/** The two most probable classes, the first one first. @param {ArrayLike<number>} probabilities */
export function topTwo(probabilities) {
  return Array.from(probabilities, (p, c) => [p, c]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 2).map(([, c]) => c)
}

/** @param {number} seed @returns {Round} */
export const newRound = (seed) => ({ seed, position: 0, answered: false, scenes: 0, you: 0, network: 0 })

/** The number of the scene shown: each visitor goes through them in an order of their own. @param {Round} round @param {number} count */
export function sceneOf({ seed, position }, count) {
  return Key.of(seed).fold('human test').permutation(count)[position % count]
}

/** The round with an answer scored; a scene already answered stays as it is. @param {Round} round @param {number} you @param {number} network @returns {Round} */
export function answered(round, you, network) {
  if (round.answered) return round
  return { ...round, answered: true, scenes: round.scenes + 1, you: round.you + you, network: round.network + network }
}

/** The next scene; one that was not answered counts for nobody. @param {Round} round @returns {Round} */
export const following = (round) => ({ ...round, position: round.position + 1, answered: false })

/** @param {Storage} storage @returns {Round} the round that was kept, with an answered scene behind it, or a new one */
export function restore(storage) {
  try {
    const kept = JSON.parse(storage.getItem(STORED) ?? 'null')
    const whole = kept && ['seed', 'position', 'scenes', 'you', 'network'].every((name) => Number.isFinite(kept[name]) && kept[name] >= 0)
    if (whole && kept.you <= kept.scenes && kept.network <= kept.scenes) return kept.answered ? following(kept) : { ...kept, answered: false }
  } catch {
    // what lies there is not ours, or nothing may lie there
  }
  return newRound(Math.floor(Math.random() * 1e6))
}

/** @param {Storage} storage @param {Round} round */
export function keep(storage, round) {
  try {
    storage.setItem(STORED, JSON.stringify(round))
  } catch {
    // private windows may refuse; the score then lasts until the page is closed
  }
}
