// What the unit tests use of node, for a browser: node:test, node:assert/strict and node:fs lead here by an import map.
/** @type {{ name: string, problem: string | null }[]} */
export const results = []
/** Files by name: what the tests read and what they wrote. @type {Record<string, string | Uint8Array>} */
export const files = {}
let running = Promise.resolve()

/** Timers that pass when they are told to, as those of node's context.mock. */
class Timers {
  /** @type {Map<number, { due: number, call: () => void }>} */
  waiting = new Map()
  now = 0
  real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }

  enable() {
    globalThis.setTimeout = (call, delay = 0) => {
      const id = this.waiting.size + 1 + this.now * 1000
      this.waiting.set(id, { due: this.now + delay, call })
      return id
    }
    globalThis.clearTimeout = (id) => this.waiting.delete(id)
  }

  tick(time) {
    this.now += time
    for (const [id, { due, call }] of [...this.waiting]) {
      if (due <= this.now && this.waiting.delete(id)) call()
    }
  }

  restore() {
    Object.assign(globalThis, this.real)
  }
}

/** Tests run one after the other; `finished` waits for those that were declared. */
export function test(name, body) {
  running = running.then(async () => {
    const timers = new Timers()
    try {
      await body({ mock: { timers } })
      results.push({ name, problem: null })
    } catch (error) {
      results.push({ name, problem: String(error?.stack ?? error) })
    } finally {
      timers.restore()
    }
  })
}

export const finished = () => running
export const readFileSync = (name) => files[name]
export const writeFileSync = (name, bytes) => {
  files[name] = bytes
}

function same(a, b) {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  if (a instanceof Set || a instanceof Map) return a.size === b.size && same([...a], [...b])
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]))
}

function check(holds, message, ...values) {
  if (!holds) throw new Error(message ?? `not as expected: ${values.map((value) => JSON.stringify(value)).join(' and ')}`)
}

export default {
  ok: (value, message) => check(value, message, value),
  equal: (a, b, message) => check(Object.is(a, b), message, a, b),
  notEqual: (a, b, message) => check(!Object.is(a, b), message, a, b),
  deepEqual: (a, b, message) => check(same(a, b), message, a, b),
}
