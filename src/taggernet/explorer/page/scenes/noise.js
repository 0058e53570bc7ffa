/** Corruption, as in training: flipped bits or Gaussian noise, the same for the same seed as `group(x, noisy=True)`. */
import { Key } from '../model/rng.js'

/** @param {Float32Array} x @param {number} amount @param {'binary' | 'real'} kind @param {number} seed */
export function corrupted(x, amount, kind, seed) {
  if (!amount) return x
  const key = Key.of(seed).fold('noise')
  const drawn = kind === 'binary' ? key.uniform(x.length) : key.normal(x.length)
  return x.map((value, at) => (kind === 'real' ? value + amount * drawn[at] : drawn[at] < amount ? 1 - value : value))
}
