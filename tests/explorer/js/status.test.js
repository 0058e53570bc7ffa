// What the status line says of a view.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShapeWorld } from '../../../src/taggernet/explorer/page/scenes/shapes.js'
import { givenBack, Session } from '../../../src/taggernet/explorer/page/ui/session.js'
import { statusOf } from '../../../src/taggernet/explorer/page/ui/status.js'

const world = new ShapeWorld(20), SHAPES = world.test(0)

/** A session whose groups give back this share of the ink. */
function shown(view = {}, { live = false, states = 6, ink = 1 } = {}) {
  const whole = { scene: SHAPES, k: 2, shown: states - 1, noise: 0, hidden: new Set(), removed: new Set(), ...view }
  const state = { groups: 2, m: new Float32Array(800).fill(0.5), z: new Float32Array(800).fill(ink) }
  const tagger = { config: { kind: 'binary', channels: 1, start: 'random' } }
  const { leftBlank } = Session.prototype
  return { world, leftBlank, view: whole, live, history: new Array(states).fill(state), tagger, painted: world.paint(whole.scene) }
}

const said = (view, more, moment = {}) => statusOf(shown(view, more), { playing: false, tool: 'move', task: null, ...moment })
const drawing = (...positions) => ({ things: [], ink: Uint8Array.from({ length: 400 }, (_, at) => Number(positions.includes(at))) })

test('every group that was taken away is named', () => {
  const away = (removed, hidden = [], k = 5) => said({ k, removed: new Set(removed), hidden: new Set(hidden) })
  assert.equal(away([1]), 'Group 2 is removed; the others share out its pixels.')
  assert.equal(away([4, 0, 2]), 'Groups 1, 3 and 5 are removed; the others share out their pixels.')
  assert.equal(away([0, 2], [], 3), 'Group 2 is the only one left: it takes all pixels.')
  assert.equal(away([], [2, 3]), 'Groups 3 and 4 are hidden; that changes nothing else.')
  assert.equal(away([1], [0]), 'Group 2 is removed; the others share out its pixels. Group 1 is hidden; that changes nothing else.')
})

test('the moment is the one shown', () => {
  assert.ok(said({ shown: 0 }).includes('at random'))
  assert.equal(said({ shown: 2 }), 'This is iteration 2 of 5.')
  assert.ok(said({ shown: 2 }, {}, { playing: true }).includes('improves its guess'))
  const live = { live: true, states: 3 }
  assert.ok(said({}, live).includes('every frame goes on from the last one'))
  assert.equal(said({ shown: 1 }, live), 'These are the groups one iteration after the last change.')
  assert.equal(said({ shown: 0 }, live), 'These are the groups before the last change.')
})

test('an empty picture is called empty, and nothing else is', () => {
  assert.equal(said({ scene: world.empty() }), 'The picture is empty: add a shape or draw.')
  assert.ok(said({ scene: drawing(), noise: 0.1 }).startsWith('The picture is empty but for the noise:'))
  assert.ok(!said({ scene: drawing(7) }).includes('empty'))
})

test('a drawing that the groups leave blank is explained', () => {
  assert.ok(said({ scene: drawing(7, 8, 9) }, { ink: 0.3 }).includes('draw thicker lines'))
  assert.ok(said({}, { ink: 0.3 }).startsWith('The groups leave the picture blank'))
  assert.equal(givenBack(new Float32Array(4), { m: [], z: [], groups: 0 }, 1), 1)
  const z = Float32Array.of(1, 0, 0.2, 0, 0.6, 1), m = Float32Array.of(1, 1, 1)
  assert.equal(givenBack(Float32Array.of(1, 1, 0, 0, 1, 1), { m, z, groups: 1 }, 2), 0.75)
})

test('the visitor is invited to what is possible', () => {
  assert.ok(said().includes('drag a shape'))
  assert.ok(said({ scene: drawing(7, 8) }).endsWith('choose a scene, hide a group, or add a shape and drag it.'))
  assert.ok(said({}, {}, { tool: 'pen' }).includes('draw in the left picture'))
  assert.ok(said({}, {}, { tool: 'eraser' }).includes('erase in the left picture'))
})

test('a task stands until a group is taken away', () => {
  assert.equal(said({ shown: 2 }, {}, { task: 'Do it.' }), 'Do it.')
  assert.ok(said({ removed: new Set([1]), k: 4 }, {}, { task: 'Do it.' }).startsWith('Group 2 is removed'))
})
