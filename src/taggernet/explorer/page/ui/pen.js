/** The positions that a stroke of the pen covers. It knows nothing of the page. */

/** How many pens side by side fill a canvas. Networks of binary pictures take thinner lines for noise. */
const PENS = 20, BINARY_PENS = 10

/** In positions. @param {{height: number, width: number}} canvas @param {string} kind of the elements */
export function penWidth({ height, width }, kind) {
  return Math.max(1, Math.round(Math.min(height, width) / (kind === 'binary' ? BINARY_PENS : PENS)))
}

/** @param {number[]} from row and column @param {number[]} to @param {{height: number, width: number}} canvas @param {number} side of the pen @returns {number[]} */
export function stroke(from, to, { height, width }, side) {
  const steps = Math.max(1, Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]))
  const first = -((side - 1) >> 1)
  /** @type {Set<number>} */
  const positions = new Set()
  for (let step = 0; step <= steps; step++) {
    const [row, col] = [0, 1].map((axis) => first + Math.round(from[axis] + ((to[axis] - from[axis]) * step) / steps))
    for (let r = Math.max(0, row); r < Math.min(height, row + side); r++) {
      for (let c = Math.max(0, col); c < Math.min(width, col + side); c++) positions.add(r * width + c)
    }
  }
  return [...positions]
}
