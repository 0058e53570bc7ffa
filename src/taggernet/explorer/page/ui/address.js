/**
 * A view as the part of the page's address behind '#', and back: a link to a scene holds all of it.
 *
 * @typedef {import('./session.js').View} View
 */
import { MOST_GROUPS, MOST_ITERATIONS } from './session.js'

const MOST_NOISE = 0.5, MOST_OBJECTS = 8, LARGEST_SEED = 2 ** 31

/** Bits as base64 without padding, safe in an address. @param {Uint8Array} ink */
function packInk(ink) {
  const bytes = new Uint8Array(Math.ceil(ink.length / 8))
  ink.forEach((drawn, at) => drawn && (bytes[at >> 3] |= 1 << (at & 7)))
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** @param {string} text @param {number} size @returns {Uint8Array | null} */
function unpackInk(text, size) {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    if (bytes.length !== Math.ceil(size / 8)) return null
    return Uint8Array.from({ length: size }, (_, at) => (bytes.charCodeAt(at >> 3) >> (at & 7)) & 1)
  } catch {
    return null
  }
}

const FIRST = 'A'.charCodeAt(0)

/** Ink of several colours as runs: a capital for what it is, then how often in base 36. @param {Uint8Array} ink */
function packRuns(ink) {
  let text = ''
  for (let begin = 0, at = 1; at <= ink.length; at++) {
    if (at < ink.length && ink[at] === ink[begin]) continue
    text += String.fromCharCode(FIRST + ink[begin]) + (at - begin).toString(36)
    begin = at
  }
  return text
}

/** @param {string} text @param {number} size @param {number} most the largest value @returns {Uint8Array | null} */
function unpackRuns(text, size, most) {
  const ink = new Uint8Array(size)
  let at = 0
  for (const [, letter, count] of text.matchAll(/([A-Z])([0-9a-z]+)/g)) {
    const value = letter.charCodeAt(0) - FIRST, end = at + parseInt(count, 36)
    if (value > most || end > size) return null
    ink.fill(value, at, end)
    at = end
  }
  return at === size ? ink : null
}

const dots = (/** @type {(number | string)[]} */ ...parts) => parts.join('.')
const numbersIn = (/** @type {string} */ text) => text.split('.').map((part) => Number(part || NaN))

/** @param {any} world @param {string} text */
function readThings(world, text) {
  const lists = text ? text.split('~').slice(0, MOST_OBJECTS).map(numbersIn) : []
  return lists.filter((list) => list.every(Number.isInteger)).map((list) => world.fromNumbers(list)).filter(Boolean)
}

/** @param {string} model @param {any} world @param {View} view */
export function encode(model, world, view) {
  const { scene } = view
  const parts = new URLSearchParams({ model })
  if (view.source === 'test' && scene.number !== undefined) parts.set('scene', String(scene.number))
  else {
    const back = scene.back ?? null
    parts.set('things', scene.things.map((/** @type {any} */ thing) => dots(...world.toNumbers(thing))).join('~'))
    if (back !== null) parts.set('back', dots(...world.backToNumbers(back)))
  }
  if (view.source === 'random') parts.set('from', 'random')
  if (scene.ink) parts.set('ink', world.inks === 1 ? packInk(scene.ink) : packRuns(scene.ink))
  parts.set('k', String(view.k))
  parts.set('t', String(view.t))
  parts.set('seed', String(view.seed))
  if (view.noise) parts.set('noise', String(view.noise))
  if (view.shown !== view.t) parts.set('shown', String(view.shown))
  if (view.hidden.size) parts.set('hidden', dots(...view.hidden))
  if (view.removed.size) parts.set('removed', dots(...view.removed))
  return parts.toString()
}

/** The model that an address names. @param {string} text */
export const modelOf = (text) => new URLSearchParams(text).get('model')

/**
 * What of a view an address says; what it says wrongly is left out.
 *
 * @param {string} text behind the '#'
 * @param {any} world
 * @returns {Partial<View>}
 */
export function decode(text, world) {
  const parts = new URLSearchParams(text)
  /** @type {Partial<View>} */
  const view = {}
  const number = (/** @type {string} */ name, /** @type {number} */ low, /** @type {number} */ high) => {
    const value = Number(parts.get(name) || NaN)
    return Number.isInteger(value) && value >= low && value <= high ? value : undefined
  }
  const scene = number('scene', 0, world.count - 1)
  const drawn = parts.get('ink') ?? '', size = world.height * world.width
  const ink = !world.draws ? null : world.inks === 1 ? unpackInk(drawn, size) : unpackRuns(drawn, size, world.inks)
  if (scene !== undefined) Object.assign(view, { scene: world.test(scene), source: 'test' })
  else if (parts.has('things')) {
    const things = readThings(world, parts.get('things') ?? '')
    const back = world.backFromNumbers(numbersIn(parts.get('back') ?? '')) ?? world.empty(world.test(0)).back
    Object.assign(view, { scene: { things, ink, back }, source: parts.get('from') === 'random' ? 'random' : 'own' })
  } else if (ink) Object.assign(view, { scene: { ...world.empty(world.test(0)), ink }, source: 'own' })
  const numbers = {
    k: number('k', 1, MOST_GROUPS), t: number('t', 1, MOST_ITERATIONS), seed: number('seed', 0, LARGEST_SEED),
    shown: number('shown', 0, MOST_ITERATIONS),
  }
  for (const [name, value] of Object.entries(numbers)) if (value !== undefined) Object.assign(view, { [name]: value })
  const noise = Number(parts.get('noise') ?? NaN)
  if (noise >= 0 && noise <= MOST_NOISE) view.noise = noise
  for (const name of /** @type {const} */ (['hidden', 'removed'])) {
    const groups = (parts.get(name) ?? '').split('.').filter(Boolean).map(Number)
    const k = view.k ?? MOST_GROUPS
    if (groups.length && groups.length < k && groups.every((group) => Number.isInteger(group) && group >= 0 && group < k)) {
      view[name] = new Set(groups)
    }
  }
  return view
}
