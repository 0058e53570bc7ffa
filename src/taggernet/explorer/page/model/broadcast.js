/**
 * A Ladder whose code is laid out over an image by one function of code and coordinates. The twin of nets/broadcast.py.
 * R rows, one per group · P = h x w positions of the coarsest level · F features
 *
 * @typedef {import('./card.js').ModelConfig} ModelConfig
 * @typedef {import('./layers.js').Layers} Layers
 * @typedef {import('./conv.js').Images} Images
 */
import { ladderFor } from './ladder.js'
import { ladderWidths, rectify } from './layers.js'

/** Half periods of the fastest cosine along each side. */
export const WAVES = 4

/** Of every position, row by row: cosines down, then across. @param {number} height @param {number} width */
export function coordinates(height, width) {
  const where = new Float32Array(height * width * 2 * WAVES)
  for (let p = 0, to = 0; p < height * width; p++) {
    for (const along of [(Math.floor(p / width) + 0.5) / height, ((p % width) + 0.5) / width]) {
      for (let wave = 1; wave <= WAVES; wave++) where[to++] = Math.SQRT2 * Math.cos(Math.PI * wave * along)
    }
  }
  return where
}

/**
 * In the place of a Ladder on the coarsest level, of this height and width.
 *
 * @param {ModelConfig} config
 * @param {Layers} layers
 * @param {number} height
 * @param {number} width
 */
export function broadcastFor(config, { of, times, norm }, height, width) {
  const ladder = ladderFor(config, {
    of: (name) => of(`ladder.${name}`),
    times: (name, ...given) => times(`ladder.${name}`, ...given),
    norm: (name, ...given) => norm(`ladder.${name}`, ...given),
  }, ladderWidths(config).length)
  const positions = height * width, where = coordinates(height, width)

  /** @param {Float32Array} image (R, P F) @param {number} rows @param {number} iteration */
  return function broadcast(image, rows, iteration) {
    const h = rectify(norm('ladder.norm_h', times('ladder.W_h', image, rows), rows, iteration), of('ladder.bias_h'))
    const { estimate, top } = ladder(h, rows, iteration)
    const everywhere = times('ladder.W_u', estimate, rows), atEach = biased(times('ladder.W_c', where, positions), of('ladder.bias'))
    const features = everywhere.length / rows, drawn = new Float32Array(rows * positions * features)
    for (let at = 0; at < drawn.length; at++) {
      const row = Math.floor(at / atEach.length)
      drawn[at] = Math.max(0, everywhere[row * features + (at % features)] + atEach[at % atEach.length])
    }
    return { estimate: drawn, top }
  }
}

/** With a bias for every feature. @param {Float32Array} x @param {Float32Array} bias */
function biased(x, bias) {
  return x.map((value, at) => value + bias[at % bias.length])
}
