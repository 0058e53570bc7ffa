/** What the status line says of what is shown, read from the session alone, so that it is never about an earlier view. */
import { STARTS } from './words.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {{playing: boolean, tool: string, task: string | null}} Moment what the session does not know
 */

/** @param {Session} session @param {Moment} moment */
export function statusOf(session, { playing, tool, task }) {
  if (isEmpty(session)) return emptySentence(session.world, session.view.noise)
  return awaySentence(session.view) ?? task ?? momentSentence(session, playing) ?? blankSentence(session) ?? liveSentence(session) ?? invitation(session, tool)
}

/** Whether nothing but the ground is in the picture. @param {Session} session */
export function isEmpty({ world, view: { scene }, painted }) {
  if (scene.things.length) return false
  const bare = world.paint(world.empty(scene)).x
  return painted.x.every((value, at) => value === bare[at])
}

/** @param {any} world @param {number} noise */
function emptySentence({ name, noun, kinds, draws }, noise) {
  if (name === 'textures') return `Only the background is left: add a ${noun}.`
  const ways = [kinds.length ? `add a ${noun}` : '', draws ? 'draw' : ''].filter(Boolean)
  return `The picture is empty${noise ? ' but for the noise' : ''}: ${ways.join(' or ') || 'choose another scene'}.`
}

/** Which groups were taken away; null if none was. @param {import('./session.js').View} view */
function awaySentence({ hidden, removed, k }) {
  const parts = []
  if (removed.size === k - 1) parts.push(`Group ${leftOf(removed, k)} is the only one left: it takes all pixels.`)
  else if (removed.size) parts.push(`${named(removed)} removed; the others share out ${removed.size > 1 ? 'their' : 'its'} pixels.`)
  if (hidden.size) parts.push(`${named(hidden)} hidden; that changes nothing else.`)
  return parts.join(' ') || null
}

/** The number of the first group that was not removed. @param {Set<number>} removed @param {number} k */
const leftOf = (removed, k) => Array.from({ length: k }, (_, group) => group).findIndex((group) => !removed.has(group)) + 1

/** @param {Set<number>} groups */
function named(groups) {
  const numbers = [...groups].sort((a, b) => a - b).map((group) => group + 1), last = numbers.pop()
  return numbers.length ? `Groups ${numbers.join(', ')} and ${last} are` : `Group ${last} is`
}

/** Of a state before the last one; null for the last one. @param {Session} session @param {boolean} playing */
function momentSentence({ view: { shown }, history, live, tagger }, playing) {
  const last = history.length - 1
  if (shown === last) return null
  if (live) return shown ? `These are the groups ${shown === 1 ? 'one iteration' : `${shown} iterations`} after the last change.` : 'These are the groups before the last change.'
  if (!shown) return STARTS[tagger.config.start].sentence
  return playing ? 'The network improves its guess, one iteration after the other.' : `This is iteration ${shown} of ${last}.`
}

/** Of ink that no group gives back; null if they do. @param {Session} session */
function blankSentence(session) {
  const { scene, shown } = session.view
  if (!session.leftBlank(shown)) return null
  return scene.ink
    ? 'The groups leave the drawing blank, as they do with noise: draw thicker lines or larger shapes.'
    : 'The groups leave the picture blank, as they do with noise.'
}

/** @param {Session} session */
const liveSentence = ({ live }) => (live ? 'The groups follow: every frame goes on from the last one.' : null)

/** What the visitor may do next. @param {Session} session @param {string} tool */
export function invitation({ world, view: { scene } }, tool) {
  if (tool !== 'move') return `Your turn: ${tool === 'pen' ? 'draw' : 'erase'} in the left picture, and the groups follow.`
  if (scene.things.length) return `Your turn: drag a ${world.noun} in the left picture, and the groups follow.`
  const act = world.kinds.length ? `add a ${world.noun} and drag it` : world.draws ? 'draw' : 'point at a pixel'
  return `Your turn: ${world.count ? 'choose a scene, ' : ''}hide a group, or ${act}.`
}
