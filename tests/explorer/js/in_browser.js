// What the unit tests use of node, for a browser: node:test, node:assert/strict and node:fs lead here by an import map.
/** @type {{ name: string, problem: string | null }[]} */
export const results = []
/** Files by name: what the tests read and what they wrote. @type {Record<string, string | Uint8Array>} */
export const files = {}
let running = Promise.resolve()

/** Tests run one after the other; `finished` waits for those that were declared. */
export function test(name, body) {
  running = running.then(async () => {
    try {
      await body()
      results.push({ name, problem: null })
    } catch (error) {
      results.push({ name, problem: String(error?.stack ?? error) })
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
