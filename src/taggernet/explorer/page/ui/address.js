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

const dots = (/** @type {(number | string)[]} */ ...parts) => parts.join('.')
const cut = (/** @type {any} */ { texture, top, left }) => dots(texture, top, left)

/** @param {any} world @param {View} view */
function writeThings(world, { scene }) {
  if (world.name === 'shapes') {
    return scene.things.map((/** @type {any} */ { kind, row, col }) => dots(world.kinds.indexOf(kind), row, col)).join('~')
  }
  return scene.things.map((/** @type {any} */ thing) => dots(thing.digit, thing.row, thing.col, cut(thing))).join('~')
}

/** @param {any} world @param {string} text */
function readThings(world, text) {
  const lists = text ? text.split('~').slice(0, MOST_OBJECTS).map((part) => part.split('.').map(Number)) : []
  const whole = lists.filter((list) => list.every(Number.isInteger))
  if (world.name === 'shapes') {
    return whole.filter(([kind]) => kind in world.kinds)
      .map(([kind, row, col]) => world.moved({ kind: world.kinds[kind], row: 0, col: 0 }, row || 0, col || 0))
  }
  return whole.filter(([digit, , , texture, top, left]) =>
    digit in world.labels && texture in world.bank && inWindow(top) && inWindow(left))
    .map(([digit, row, col, texture, top, left]) => world.moved({ digit, row, col, texture, top, left }, row, col))
}

const inWindow = (/** @type {number} */ place) => place >= 0 && place <= 10

/** @param {string} model @param {any} world @param {View} view */
export function encode(model, world, view) {
  const { scene } = view
  const parts = new URLSearchParams({ model })
  if (view.source === 'test' && scene.number !== undefined) parts.set('scene', String(scene.number))
  else if (world.name !== 'own') parts.set('things', writeThings(world, view))
  else if (scene.number !== undefined && !scene.ink) parts.set('scene', String(scene.number))
  if (view.source === 'random') parts.set('from', 'random')
  if (scene.back && !parts.has('scene')) parts.set('back', cut(scene.back))
  if (scene.ink) parts.set('ink', packInk(scene.ink))
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
  const ink = parts.has('ink') ? unpackInk(parts.get('ink') ?? '', world.height * world.width) : null
  if (scene !== undefined) Object.assign(view, { scene: world.test(scene), source: 'test' })
  else if (parts.has('things') && world.name !== 'own') {
    const back = (parts.get('back') ?? '').split('.').map(Number)
    const things = readThings(world, parts.get('things') ?? '')
    const background = back.length === 3 && back[0] in (world.bank ?? []) && inWindow(back[1]) && inWindow(back[2])
      ? { texture: back[0], top: back[1], left: back[2] } : world.test(0).back
    Object.assign(view, { scene: { things, ink, back: background }, source: parts.get('from') === 'random' ? 'random' : 'own' })
  } else if (ink && world.draws) Object.assign(view, { scene: { things: [], ink }, source: 'own' })
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
