// The session, the player, addresses, the human test and the GIF encoder: all that needs no page.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { OwnWorld } from '../../../src/taggernet/explorer/page/scenes/own.js'
import { SpriteWorld } from '../../../src/taggernet/explorer/page/scenes/sprites.js'
import { TetrominoWorld } from '../../../src/taggernet/explorer/page/scenes/tetrominoes.js'
import { ShapeWorld } from '../../../src/taggernet/explorer/page/scenes/shapes.js'
import { decode, encode } from '../../../src/taggernet/explorer/page/ui/address.js'
import { encodeGif } from '../../../src/taggernet/explorer/page/ui/gif.js'
import { penWidth, stroke } from '../../../src/taggernet/explorer/page/ui/pen.js'
import { Player } from '../../../src/taggernet/explorer/page/ui/player.js'
import { answered, errorOf, following, keep, newRound, restore, sceneOf, topTwo } from '../../../src/taggernet/explorer/page/ui/quiz.js'
import { Session } from '../../../src/taggernet/explorer/page/ui/session.js'

const vectors = JSON.parse(readFileSync(process.env.TAGGERNET_VECTORS, 'utf-8'))

/** A tagger that remembers how it was asked. */
function fake() {
  const state = (groups, seed = 0) => ({ groups, z: new Float32Array(groups * 400), m: new Float32Array(groups * 400).fill(1 / groups), mPre: new Float32Array(groups * 400), fed: new Float32Array(0), top: null, seed })
  return {
    asked: [], steps: 0, card: { groups: 4, iterations: 5 }, config: { kind: 'binary', channels: 1 }, scaleOf: () => 1,
    inputs: (x) => x,
    start: state,
    priorFrom: () => null,
    group(x, groups, iterations, seed) {
      this.asked.push([groups, iterations, seed])
      return Array.from({ length: iterations + 1 }, () => state(groups, seed))
    },
    step(x, before) {
      this.steps += 1
      return { ...before }
    },
  }
}

function begin() {
  const session = new Session(fake(), new ShapeWorld(20), 'shapes')
  assert.equal(session.tagger.asked.length, 0)
  session.set(session.defaults())
  return session
}

test('what belongs to the old groups goes with them, and nothing else does', () => {
  const session = begin()
  session.hide(1)
  session.remove(2)
  session.set({ noise: 0.2 })
  session.set({ t: 7 })
  assert.deepEqual([[...session.view.hidden], [...session.view.removed]], [[1], [2]])
  session.set({ k: 3 })
  assert.equal(session.view.hidden.size + session.view.removed.size, 0)
})

test('the iteration shown is always one that there is', () => {
  const session = begin()
  assert.equal(session.view.shown, 5)
  session.set({ t: 2 })
  assert.equal(session.view.shown, 2)
  session.set({ t: 8 })
  assert.equal(session.view.shown, 8)
  session.set({ shown: 3 })
  session.set({ noise: 0.1 })
  assert.equal(session.view.shown, 3)
  session.set({ shown: 99 })
  assert.equal(session.view.shown, 8)
})

test('one group always stays, and a group is hidden or removed, not both', () => {
  const session = begin()
  for (const k of [0, 1, 2]) assert.ok(session.remove(k))
  assert.equal(session.remove(3), false)
  session.hide(0)
  assert.deepEqual([[...session.view.hidden], [...session.view.removed]], [[0], [1, 2]])
  session.hide(0)
  assert.equal(session.view.hidden.size, 0)
})

test('dragging goes on from the last state, with two iterations', () => {
  const session = begin()
  const { scene } = session.view
  session.follow({ ...scene, things: scene.things.slice(1) })
  assert.equal(session.tagger.steps, 2)
  assert.equal(session.tagger.asked.length, 1)
  assert.deepEqual([session.view.source, session.live, session.history.length], ['own', true, 3])
  session.fresh()
  assert.deepEqual(session.tagger.asked.at(-1), [4, 5, 1])
  assert.equal(session.live, false)
})

test('what a challenge set lasts until another scene is chosen', () => {
  const session = begin(), { world } = session
  const conditions = ({ k, t, seed, noise }) => [k, t, seed, noise]
  session.set({ k: 6, noise: 0.1 })
  session.challenge({ scene: world.test(3), k: 4, t: 7, seed: 2, noise: 0.2 })
  session.set({ k: 5 })
  session.follow({ ...session.view.scene, things: [] })
  session.challenge({ scene: world.test(4), k: 3, t: 2, seed: 1, noise: 0 })
  assert.deepEqual([conditions(session.view), session.view.source], [[3, 2, 1, 0], 'own'])
  session.choose({ scene: world.test(5), source: 'test' })
  assert.deepEqual([conditions(session.view), session.view.scene.number], [[6, 5, 0, 0.1], 5])
  session.set({ k: 2 })
  session.choose({ scene: world.test(6), source: 'test' })
  assert.equal(session.view.k, 2)
})

test('playing ends with whatever else is done', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const session = begin(), heard = []
  const player = new Player(session, (playing) => heard.push(playing))
  const pass = (times) => Array.from({ length: times }, () => context.mock.timers.tick(100))
  player.play(100)
  pass(2)
  assert.equal(session.view.shown, 2)
  session.set({ scene: session.world.test(1) })
  assert.deepEqual([player.playing, session.view.shown], [false, 5])
  pass(10)
  assert.deepEqual([session.view.shown, heard], [5, [true, false]])
  player.play(100)
  pass(6)
  assert.deepEqual([player.playing, session.view.shown], [false, 5])
})

test('an address holds the whole view', () => {
  const session = begin(), { world } = session
  const views = [
    { scene: world.test(17), source: 'test', noise: 0.14, k: 6, t: 3, shown: 1, seed: 9 },
    { scene: { things: [world.make('ring'), world.moved(world.make('bar'), 3, 1)], ink: null }, source: 'own', k: 3, removed: new Set([2]) },
    { scene: { things: [], ink: Uint8Array.from({ length: 400 }, (_, i) => i % 3 === 0) }, source: 'own', hidden: new Set([0, 1]), k: 5 },
    { scene: world.random(5, 3), source: 'random' },
  ]
  for (const view of views) {
    session.set({ ...session.defaults(), ...view })
    const text = encode('shapes', world, session.view), before = { ...session.view }
    session.set({ ...session.defaults(), ...decode(text, world) })
    for (const name of ['source', 'k', 't', 'seed', 'noise', 'shown', 'hidden', 'removed']) assert.deepEqual(session.view[name], before[name], name)
    assert.deepEqual([...session.painted.x], [...world.paint(before.scene).x])
    assert.ok(text.length < 300)
  }
})

test('an address holds coloured things, what is below them, and ink of several colours', () => {
  const ink = Uint8Array.from({ length: 1024 }, (_, at) => (at > 40 && at < 300 ? at % 7 : 0))
  const file = new Map([['x', { shape: [3, 32, 32, 3], data: Float32Array.from({ length: 9216 }, (_, at) => (at % 11) / 11) }]])
  for (const world of [new SpriteWorld([32, 32]), new OwnWorld([32, 32], { kind: 'real', channels: 3 }, file), new TetrominoWorld([28, 28])]) {
    const { back } = world.test(2), things = world.kinds.slice(0, 4).map((kind, at) => world.moved(world.make(kind, null, at), 3 * at, at))
    for (const scene of [{ ...world.random(2, 7) }, { things, ink: null, back }, { things, ink: ink.slice(0, world.height * world.width), back }, world.empty(world.test(1))]) {
      const view = { source: 'own', scene: { ...scene, number: undefined }, k: 3, t: 2, shown: 2, seed: 0, noise: 0, hidden: new Set(), removed: new Set() }
      const text = encode('sprites', world, view), found = decode(text, world)
      assert.deepEqual([...world.paint(found.scene).x], [...world.paint(scene).x])
      assert.deepEqual(found.scene.things, scene.things)
    }
  }
  const world = new SpriteWorld([32, 32])
  for (const bad of ['things=0.1.1~9.1.1.0~0.1.1.99999~0.0.0.0.6', 'things=&ink=A1zzz&back=999', 'things=&ink=Z1sg&back=x']) {
    const { scene } = decode(bad, world)
    assert.deepEqual([scene.things, scene.ink], [[], null])
    assert.equal(scene.back, world.test(0).back)
  }
})

test('what an address says wrongly is left out', () => {
  const world = new ShapeWorld(20)
  const bad = 'scene=-1&k=99&t=x&seed=1e99&noise=7&shown=-2&hidden=0.1.2.3.4.5.6.7&removed=a&ink=%%&things=9.9.9~0~99.1.1~0.-50.400'
  const view = decode(bad, world)
  assert.deepEqual(Object.keys(view).sort(), ['scene', 'source'])
  assert.deepEqual(view.scene.things, [{ kind: 'square', row: 0, col: 0 }, { kind: 'square', row: 0, col: 13 }])
  assert.deepEqual(decode('', world), {})
})

test('groups go on from where they are, unless they hold nothing of the picture', () => {
  const session = begin(), { scene } = session.view
  session.follow({ ...scene, things: scene.things.slice(1) })
  assert.equal(session.live, true)
  assert.ok(session.leftBlank(0))
  const last = session.history[session.history.length - 1]
  session.follow(scene)
  assert.notEqual(session.history[0], last)
  const filled = session.history[session.history.length - 1]
  filled.z.fill(1)
  session.follow({ ...scene, things: scene.things.slice(1) })
  assert.equal(session.history[0], filled)
})

test('a stroke has no gaps, stays on the canvas, and is as wide as the canvas asks', () => {
  const canvas = { height: 20, width: 30 }
  const cells = stroke([2, 3], [9, 28], canvas, 1).map((at) => [Math.floor(at / 30), at % 30])
  assert.deepEqual(new Set(cells.map(([, col]) => col)).size, 26)
  for (const [row, col] of cells.slice(1)) assert.ok(cells.some(([r, c]) => (r !== row || c !== col) && Math.abs(r - row) <= 1 && Math.abs(c - col) <= 1))
  assert.deepEqual(stroke([5, 5], [5, 5], canvas, 1), [155])
  assert.deepEqual(stroke([-9, 5], [-9, 9], canvas, 1), [])
  assert.equal(stroke([5, 5], [5, 5], { height: 64, width: 64 }, 3).length, 9)
  const widths = (side) => ['binary', 'real', 'categorical'].map((kind) => penWidth({ height: side, width: side + 5 }, kind))
  assert.deepEqual([6, 20, 28, 64].map(widths), [[1, 1, 1], [2, 1, 1], [3, 1, 1], [6, 3, 3]])
})

test('both sides of the human test are scored like metrics.top2_error', () => {
  for (const { probabilities, truth, error } of vectors.top2) assert.equal(errorOf(topTwo(probabilities), truth), error)
})

test('the score survives a reload, and an answer counts once', () => {
  const stored = new Map(), storage = { getItem: (name) => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value) }
  let round = answered(newRound(5), 0.5, 0)
  round = answered(round, 1, 1)
  assert.deepEqual([round.scenes, round.you, round.network], [1, 0.5, 0])
  keep(storage, round)
  const again = restore(storage)
  assert.deepEqual(again, following(round))
  assert.notEqual(sceneOf(again, 1000), sceneOf(round, 1000))
  for (const junk of ['{', '{"seed": 1}', '{"seed":1,"position":0,"scenes":1,"you":5,"network":0}']) {
    stored.forEach((_, name) => stored.set(name, junk))
    assert.equal(restore(storage).scenes, 0)
  }
})

test('a GIF holds its frames (Python reads it back)', () => {
  const [width, height] = [70, 60]
  const frames = [0, 1, 2].map((shift) => ({
    milliseconds: 300 + 100 * shift,
    pixels: Uint8ClampedArray.from({ length: 4 * width * height }, (_, at) => ((at >> 2) * (1 + shift) * 37 + (at & 3) * 80) % 256 & 0xe0),
  }))
  writeFileSync(process.env.TAGGERNET_GIF, encodeGif(frames, width, height))
})
