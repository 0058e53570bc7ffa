// First masks from the scene: what needs no model. tests/explorer/test_page_model.py compares them with PyTorch's.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusters, ndtr } from '../../../src/taggernet/explorer/page/model/clusters.js'
import { inOrderOf } from '../../../src/taggernet/explorer/page/model/informed.js'
import { softmaxOverGroups } from '../../../src/taggernet/explorer/page/model/likelihood.js'
import { Key } from '../../../src/taggernet/explorer/page/model/rng.js'

test('the normal distribution is that of tables', () => {
  for (const [x, share] of [[0, 0.5], [1, 0.8413447460685429], [-1.96, 0.024997895148220435], [-5.5, 1.8989562465887e-8], [5.5, 1]]) {
    assert.ok(Math.abs(ndtr(x) - share) < 1e-7, `${x}: ${ndtr(x)}`)
  }
})

test('like values are one cluster, whatever the random numbers', () => {
  const values = Float32Array.from({ length: 30 }, (_, p) => p % 3)
  for (let seed = 0; seed < 5; seed++) {
    const m = softmaxOverGroups(clusters(values, new Float32Array(30).fill(1), Key.of(seed).normal(90)), 3)
    const owner = (p) => [0, 1, 2].find((k) => m[k * 30 + p] > 0.99)
    for (let p = 0; p < 30; p++) assert.equal(owner(p), owner(p % 3))
    assert.equal(new Set([owner(0), owner(1), owner(2)]).size, 3)
  }
})

test('groups of a changed scene come in the order of those before', () => {
  const mPre = Float32Array.of(5, 0, 0, 0, 0, 5, 5, 0, 0, 0, 0, 5)
  const m = Float32Array.of(0.1, 0.1, 0.1, 0.8, 0.6, 0.2, 0.2, 0.1, 0.3, 0.7, 0.7, 0.1)
  assert.deepEqual([...inOrderOf(mPre, m, 3)], [0, 0, 0, 5, 5, 0, 0, 0, 0, 5, 5, 0])
})
