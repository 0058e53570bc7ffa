/** What each group hears of the others on the topmost level, times its gate. The twin of nets/group_attention.py. */

/**
 * @param {Pick<import('./layers.js').Layers, 'of' | 'times'>} layers
 * @param {Float32Array} z (K, F)
 * @param {number} groups
 * @returns {Float32Array} (K, F)
 */
export function groupAttention({ of, times }, z, groups) {
  const [q, k, v] = ['query', 'key', 'value'].map((part) => times(`ladder.attention.${part}`, z, groups))
  const gate = of('ladder.attention.gate'), width = q.length / groups, features = z.length / groups
  const heard = new Float32Array(z.length)
  for (let g = 0; g < groups; g++) {
    const scores = Array.from({ length: groups }, (_, j) => {
      let score = 0
      for (let d = 0; d < width; d++) score += q[g * width + d] * k[j * width + d]
      return j === g ? -Infinity : score / Math.sqrt(width)
    })
    const highest = Math.max(0, ...scores) // 0: the silence beside the groups
    const shares = scores.map((score) => Math.exp(score - highest))
    const total = shares.reduce((sum, share) => sum + share, Math.exp(-highest))
    for (let f = 0; f < features; f++) {
      let sum = 0
      for (let j = 0; j < groups; j++) sum += shares[j] * v[j * features + f]
      heard[g * features + f] = (gate[f] * sum) / total
    }
  }
  return heard
}
