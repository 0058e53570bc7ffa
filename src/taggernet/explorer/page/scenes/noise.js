/** Corruption, as in training: flipped bits, other states or Gaussian noise, with the seed that `group(x, noisy=True)` uses. */
import { Key } from '../model/rng.js'

/**
 * @param {Float32Array} x
 * @param {number} amount
 * @param {{kind: string, channels: number}} config
 * @param {number} seed
 * @param {(element: number) => number} [scaleOf] how long the model's 1 is in the units of x
 */
export function corrupted(x, amount, { kind, channels }, seed, scaleOf = () => 1) {
  if (!amount) return x
  const key = Key.of(seed).fold('noise')
  if (kind === 'categorical') return otherStates(x, amount, channels, key)
  const drawn = kind === 'binary' ? key.uniform(x.length) : key.normal(x.length)
  if (kind === 'real') return x.map((value, at) => value + amount * scaleOf(at) * drawn[at])
  return x.map((value, at) => (drawn[at] < amount ? 1 - value : value))
}

/** Each position shows another state with probability `amount`. @param {Float32Array} x @param {number} amount @param {number} channels @param {Key} key */
function otherStates(x, amount, channels, key) {
  const positions = x.length / channels, out = new Float32Array(x.length)
  const flips = key.uniform(positions), turns = key.fold(1).integers(channels - 1, positions)
  for (let at = 0; at < positions; at++) {
    const state = x.subarray(at * channels, (at + 1) * channels).indexOf(1)
    out[at * channels + ((state + (flips[at] < amount ? 1 + turns[at] : 0)) % channels)] = 1
  }
  return out
}
