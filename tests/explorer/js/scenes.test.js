// Random numbers, scenes, noise, AMI and half precision, against what Python wrote (test_page_units.py).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Key } from '../../../src/taggernet/explorer/page/model/rng.js'
import { halfTable } from '../../../src/taggernet/explorer/page/model/safetensors.js'
import { adjustedMutualInformation, foregroundRandIndex, labels } from '../../../src/taggernet/explorer/page/scenes/ami.js'
import { corrupted } from '../../../src/taggernet/explorer/page/scenes/noise.js'
import { spriteMask } from '../../../src/taggernet/explorer/page/scenes/objects.js'
import { OwnWorld } from '../../../src/taggernet/explorer/page/scenes/own.js'
import { SEEN, ShapeWorld } from '../../../src/taggernet/explorer/page/scenes/shapes.js'
import { SpriteWorld } from '../../../src/taggernet/explorer/page/scenes/sprites.js'
import { TetrominoWorld } from '../../../src/taggernet/explorer/page/scenes/tetrominoes.js'
import { TextureWorld } from '../../../src/taggernet/explorer/page/scenes/textures.js'
import { channelColours } from '../../../src/taggernet/explorer/page/ui/pictures.js'

const vectors = JSON.parse(readFileSync(process.env.TAGGERNET_VECTORS, 'utf-8'))
const near = (a, b, most = 1e-6) => {
  assert.equal(a.length, b.length)
  assert.ok(a.every((value, at) => Math.abs(value - b[at]) <= most))
}

test('random numbers are those of rng.py', () => {
  const key = Key.of(vectors.rng.seed).fold('a name', 5, 'ä')
  assert.deepEqual(key.integers(1000, 8, 3), vectors.rng.integers)
  assert.deepEqual(key.permutation(20), vectors.rng.permutation)
  near([...key.uniform(8)], vectors.rng.uniform, 0)
  near([...key.normal(8)], vectors.rng.normal, 1e-5)
})

/** Whether a world has the test scenes that Python made. */
function hasScenes(world, scenes) {
  for (const { number, x, groups } of scenes) {
    const painted = world.paint(world.test(number))
    near([...painted.x], x, 1e-7)
    assert.deepEqual([...painted.truth], groups)
  }
}

for (const [name, { size, objects, fewest, scenes }] of Object.entries(vectors.shapes)) {
  test(`the test scenes of ${name} are those of data.shapes`, () => hasScenes(new ShapeWorld(size, objects, fewest), scenes))
}

for (const [name, { size, objects, fewest, one, scenes }] of Object.entries(vectors.sprites)) {
  test(`the test scenes of ${name} are those of data.sprites`, () => hasScenes(new SpriteWorld([size, size], objects, fewest, one), scenes))
}

test('the sprites have the sizes of sprite_mask', () => {
  const found = [16, 64].flatMap((size) => ['square', 'ellipse', 'heart'].flatMap((kind) => [0, 1, 2, 3, 4, 5].flatMap((scale) =>
    Array.from({ length: 40 }, (_, turn) => spriteMask(kind, 0.5 + scale / 10, (2 * Math.PI * turn) / 40, size).covered.reduce((a, b) => a + b)))))
  assert.deepEqual(found, vectors.masks)
})

test('the test scenes of tetrominoes are those of data.tetrominoes', () => {
  for (const { size, objects, scenes } of vectors.tetrominoes) hasScenes(new TetrominoWorld([size, size], objects), scenes)
})

test('the test scenes of textures are those of data.texture_mnist', () => {
  const { images, labels: digits } = vectors.digits
  const world = new TextureWorld(Float32Array.from(images), Float32Array.from(digits), 2)
  for (const { number, x, groups, classes } of vectors.textures) {
    const painted = world.paint(world.test(number))
    near([...painted.x], x)
    assert.deepEqual([...painted.truth], groups)
    assert.deepEqual(painted.classes, classes)
  }
  const alone = new TextureWorld(Float32Array.from(images), Float32Array.from(digits), 1)
  near([...alone.paint(alone.test(3)).x], vectors.single)
})

test('noise is that of training', () => {
  const of = (kind, x, amount, channels = 1) => [...corrupted(Float32Array.from(x), amount, { kind, channels }, 3)]
  near(of('binary', vectors.noise.x, 0.2), vectors.noise.binary, 0)
  near(of('real', vectors.noise.x, 0.3), vectors.noise.real, 1e-5)
  near(of('categorical', vectors.noise.categorical.x, 0.3, 4), vectors.noise.categorical.found, 0)
})

test('AMI and foreground ARI are those of metrics', () => {
  for (const { truth, found, ami, ari, objects } of vectors.ami) {
    assert.ok(Math.abs(adjustedMutualInformation(Uint8Array.from(truth), Uint8Array.from(found)) - ami) < 1e-9)
    for (const background of [0, 1]) {
      const score = foregroundRandIndex(truth, Uint8Array.from(found), background)
      if (objects[background]) assert.ok(Math.abs(score - ari[background]) < 1e-9)
      else assert.equal(score, null)
    }
  }
  assert.equal(adjustedMutualInformation(new Uint8Array(4), new Uint8Array(4)), null)
})

test('half precision is that of numpy', () => {
  const table = halfTable()
  vectors.halves.forEach(([bits, value]) => assert.equal(table[bits], value))
  assert.ok(Number.isNaN(table[0x7e00]))
})

test('the most probable group is taken', () => {
  assert.deepEqual([...labels(Float32Array.from([0.2, 0.5, 0.7, 0.8, 0.5, 0.3]), 2)], [1, 0, 0])
})

test('shapes that no network saw are on offer, and stay on the canvas', () => {
  const world = new ShapeWorld(20)
  assert.deepEqual(world.kinds.slice(0, 3), SEEN)
  assert.ok(world.kinds.length > 5)
  for (const kind of world.kinds) {
    const { row, col } = world.moved(world.make(kind), 99, -99)
    const { height } = world.size({ kind })
    assert.deepEqual([row, col], [20 - height, 0])
    assert.ok(world.paint({ things: [{ kind, row, col }], ink: null }).x.some((value) => value === 1))
  }
})

test('a drawing has no truth, and a file keeps its own', () => {
  const world = new ShapeWorld(20)
  assert.equal(world.paint({ things: [], ink: new Uint8Array(400) }).truth, null)
  const file = new Map([['x', { shape: [2, 2, 2], data: Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7) }], ['groups', { shape: [2, 2, 2], data: Float32Array.of(1, 1, 2, 2, 0, 0, 0, 0) }]])
  const own = new OwnWorld([2, 2], { kind: 'real', channels: 1 }, file)
  assert.deepEqual([...own.paint(own.test(1)).x], [4, 5, 6, 7])
  assert.equal(own.paint(own.test(1)).scored, false)
  assert.deepEqual([...own.paint(own.test(0)).truth], [1, 1, 2, 2])
})

test('coloured shapes stay on the canvas, cover what is below, and are its truth', () => {
  for (const world of [new SpriteWorld([64, 64]), new TetrominoWorld([35, 35]), new OwnWorld([12, 17], { kind: 'real', channels: 3 }, null), new OwnWorld([9, 8], { kind: 'categorical', channels: 4 }, null)]) {
    assert.ok(world.kinds.length > 4, world.name)
    for (const kind of world.kinds) {
      const below = world.moved(world.make(kind, null, 0), -99, 999), above = { ...below, colour: world.swatches[1] }
      const { height, width } = world.size(below)
      assert.deepEqual([below.row, below.col], [0, world.width - width])
      const { x, truth } = world.paint({ things: [below, above], ink: null, back: null })
      const own = [...truth.keys()].filter((at) => truth[at] === 2)
      assert.ok(own.length > 0 && own.length <= height * width && !truth.includes(1))
      for (const at of own) assert.deepEqual([...x.subarray(at * world.channels, (at + 1) * world.channels)], world.colours[above.colour].map(Math.fround))
    }
  }
})

test('a pen has the colours on offer, and an eraser leaves the ground', () => {
  const world = new SpriteWorld([32, 32]), thing = world.make('heart', null, 2), scene = { things: [thing], ink: null, back: 51 }
  const middle = (thing.row + 4) * 32 + thing.col + 4
  const drawn = world.inked(scene, null, [5, 6], true, 3), erased = world.inked(drawn, null, [middle], false, 3)
  assert.equal(world.inked(drawn, null, [5], true, 3), null)
  const { x, truth } = world.paint(erased)
  assert.deepEqual([...x.subarray(15, 18)], world.colours[world.swatches[3]])
  assert.deepEqual([...x.subarray(3 * middle, 3 * middle + 3)], [0.2, 0.2, 0.2].map(Math.fround))
  assert.equal(truth, null)
})

test('colours have names', () => {
  const names = (world) => world.swatches.map((index) => world.colourName(index))
  assert.deepEqual(names(new TetrominoWorld([35, 35])), ['red', 'green', 'blue', 'yellow', 'magenta', 'cyan', 'white'])
  assert.deepEqual(new Set(names(new SpriteWorld([64, 64]))).size, 8)
  assert.deepEqual(names(new OwnWorld([9, 9], { kind: 'categorical', channels: 3 }, null)), ['state 1', 'state 2', 'state 0'])
  const world = new TetrominoWorld([35, 35])
  assert.equal(world.title(world.make('T0', null, 3)), 'yellow T')
})

test('the colours of channels add up to white, and states have different ones', () => {
  for (const channels of [1, 2, 3, 4, 7]) {
    const sum = channelColours('real', channels).reduce((total, colour) => total.map((part, i) => part + colour[i]))
    near(sum, [255, 255, 255], 1e-9)
  }
  assert.deepEqual(channelColours('binary', 3), [[255, 0, 0], [0, 255, 0], [0, 0, 255]])
  const states = channelColours('categorical', 12)
  for (const [i, a] of states.entries()) for (const b of states.slice(i + 1)) assert.ok(a.reduce((sum, part, at) => sum + Math.abs(part - b[at]), 0) > 30)
})

test('shapes on a scene of a file keep its truth and add theirs', () => {
  const file = new Map([['x', { shape: [2, 9, 9, 3], data: new Float32Array(2 * 243).fill(0.5).fill(7, 243) }], ['groups', { shape: [2, 9, 9], data: new Float32Array(162).fill(3) }]])
  const world = new OwnWorld([9, 9], { kind: 'real', channels: 3 }, file), scene = world.test(1)
  assert.deepEqual(world.range, [0.5, 7])
  const { truth, scored } = world.paint({ ...scene, things: [world.make('square', scene, 0)], number: undefined })
  assert.deepEqual([...new Set(truth)].sort(), [3, 4])
  assert.ok(scored)
  assert.ok(world.paint(world.empty()).x.every((value) => value === 7 || value === 0.5))
})
