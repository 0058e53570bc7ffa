// Random numbers, scenes, noise, AMI and half precision, against what Python wrote (test_page_units.py).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Key } from '../../../src/taggernet/explorer/page/model/rng.js'
import { halfTable } from '../../../src/taggernet/explorer/page/model/safetensors.js'
import { adjustedMutualInformation, labels } from '../../../src/taggernet/explorer/page/scenes/ami.js'
import { corrupted } from '../../../src/taggernet/explorer/page/scenes/noise.js'
import { OwnWorld } from '../../../src/taggernet/explorer/page/scenes/own.js'
import { SEEN, ShapeWorld } from '../../../src/taggernet/explorer/page/scenes/shapes.js'
import { TextureWorld } from '../../../src/taggernet/explorer/page/scenes/textures.js'

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

for (const [name, { size, objects, scenes }] of Object.entries(vectors.shapes)) {
  test(`the test scenes of ${name} are those of data.shapes`, () => {
    const world = new ShapeWorld(size, objects)
    for (const { number, x, groups } of scenes) {
      const painted = world.paint(world.test(number))
      assert.deepEqual([...painted.x], x)
      assert.deepEqual([...painted.truth], groups)
    }
  })
}

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
  near([...corrupted(Float32Array.from(vectors.noise.x), 0.2, 'binary', 3)], vectors.noise.binary, 0)
  near([...corrupted(Float32Array.from(vectors.noise.x), 0.3, 'real', 3)], vectors.noise.real, 1e-5)
})

test('AMI is that of metrics.adjusted_mutual_information', () => {
  for (const { truth, found, ami } of vectors.ami) {
    assert.ok(Math.abs(adjustedMutualInformation(Uint8Array.from(truth), Uint8Array.from(found)) - ami) < 1e-9)
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
  const own = new OwnWorld([2, 2], 'real', file)
  assert.deepEqual([...own.paint(own.test(1)).x], [4, 5, 6, 7])
  assert.equal(own.paint(own.test(1)).scored, false)
  assert.deepEqual([...own.paint(own.test(0)).truth], [1, 1, 2, 2])
})
