/** A few words for making and finding elements. */

/** The element with this id. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id)

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on...` are listeners, `text` is the content, others are attributes
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'text') element.textContent = value
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children)
  return element
}

/** Set an attribute or property only where it differs, so that nothing is announced twice. @param {any} element @param {string} text */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** A small dot in the colour of a group. @param {string} colour */
export function dot(colour) {
  const found = make('span', { class: 'dot', 'aria-hidden': 'true' })
  found.style.backgroundColor = colour
  return found
}

/** A small patch of colour, which is given to it later. */
export const swatch = () => make('span', { class: 'swatch', role: 'img' })

/** A score with two digits, never minus zero. @param {number} score */
export const figure = (score) => (Math.abs(score) < 0.005 ? 0 : score).toFixed(2)
export const percent = (/** @type {number} */ share, digits = 0) => `${(100 * share).toFixed(digits)} %`
export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches
export const darkScheme = () => matchMedia('(prefers-color-scheme: dark)').matches

/** Offer bytes as a download. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const address = URL.createObjectURL(blob)
  make('a', { href: address, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
