/** What a visitor reads: first of all, and of the letters and figures, in small bubbles and together at the end of the page. */
import { byId, make } from './dom.js'

/** @type {Record<string, [string, string]>} */
export const WORDS = {
  ami: ['AMI', 'Adjusted mutual information compares the groups found with the true ones, pixel by pixel: 1 means the same groups, 0 is what chance would give. Pixels that belong to no object, or to two, are not counted. It says nothing where nobody knows the truth, as in a drawing.'],
  ari: ['FG-ARI', 'The adjusted Rand index of the foreground compares pairs of pixels: are two that belong to the same object in the same group, and two of different objects in different ones? 1 means always, 0 is what chance would give. Pixels of the background are not counted.'],
  k: ['K, the number of groups', 'How many groups share the picture. The network was trained with one number and works with others: it looks at every group in the same way. One more than there are objects is comfortable.'],
  t: ['T, the number of iterations', 'How often the network improves its guess.'],
  z: ['z', 'What a group expects the whole picture to look like, also where it is hidden behind others.'],
  m: ['m, the mask', 'The share of each pixel that belongs to the group. Over all groups it adds up to one.'],
  mz: ['m · z', 'What the group adds to the picture: what it expects, where it is responsible. All groups together give the picture back.'],
  grey: ['Why masks are grey in places', 'Where there is nothing but background, it makes no difference which group a pixel belongs to: the picture is the same. The masks mean nothing there, and are shown in grey.'],
  spare: ['Why one group stays empty', 'Every object needs a group, and a background perhaps one more. A group beyond that is spare; the network leaves it empty, or lets it hold a copy of an object that another group already explains.'],
  hide: ['Hide and remove', 'Hiding leaves a group out of the picture and changes nothing else. Removing takes it out of the competition: the other groups share its pixels among them, and show what was behind it.'],
  noise: ['Noise', 'The network was trained to repair pictures in which pixels are wrong. Bits are flipped, or states changed, with this probability; grey values and colours are shaken by this much.'],
  delta: ['δz and L(m)', 'δz is the direction in which z should change to explain the picture better. L(m) is how well a group explains each pixel, compared with the other groups.'],
}

const IMPROVED = 'First guess: each group takes what it explains a little better than the others …'
const CORRECTED = 'Then the network corrects this: each group takes what it explains a little better than the others …'

/** Of a start that knows the scene. @param {string} how */
const fromTheScene = (how) => ({
  name: 'start from the scene', again: 'New start', sentence: `The masks of this model start from the scene: ${how}.`,
  then: CORRECTED, note: 'From the scene, like all groups at the start.',
})

/**
 * What a visitor reads of the first masks, by the model's `start`: the name of that moment and of its button, what happens
 * in it and in the iteration after it, and a note for each group.
 *
 * @type {Record<string, {name: string, again: string, sentence: string, then: string, note: string}>}
 */
export const STARTS = {
  random: {
    name: 'random start', again: 'New random start', sentence: 'At the start, every pixel is dealt to the groups at random.',
    then: IMPROVED, note: 'Random, like all groups at the start.',
  },
  values: fromTheScene('pixels with like values begin in one group'),
  parts: fromTheScene('parts that often appear together begin in one group'),
  places: fromTheScene('pixels with like values that are near each other begin in one group'),
}

/** @param {string} words */
export const capitalised = (words) => words[0].toUpperCase() + words.slice(1)

const TIMES = ['never', 'once', 'twice', 'three times', 'four times', 'five times', 'six times', 'seven times', 'eight times', 'nine times', 'ten times']
const LEARNED = 'It only learned to repair noisy pictures, with a few groups that share the work: each explains what the others cannot.'

/** What a visitor reads first. @param {any} world @param {number} iterations */
export function leadFor({ name, objects, fewest, height, width }, iterations) {
  const watch = `Watch it guess ${TIMES[iterations]}`
  if (name === 'shapes') {
    return `You see ${objects === 3 && fewest === 3 ? 'three' : 'a few'} shapes at a glance; this network sees ${height * width} loose pixels, and nobody ever told it what a shape is. ${LEARNED} ${watch}, and the shapes come apart.`
  }
  if (name === 'textures') {
    const what = objects === 1 ? 'A handwritten digit, painted with a texture' : 'Two handwritten digits, one in front of the other, painted with textures'
    return `${what} on a textured background: there is no outline to follow. Nobody told this network what a digit is when it learned to group; it only repaired noisy pictures, with a few groups that share the work. ${watch}.`
  }
  if (name === 'own') return `This network sees loose pixels, and nobody ever told it which of them belong together. ${LEARNED} ${watch}.`
  const [many, one] = name === 'sprites' ? ['coloured shapes', 'shape'] : ['pieces', 'piece']
  return `You see a few ${many} at a glance; this network sees loose pixels, and nobody ever told it what a ${one} is. ${LEARNED} ${watch}.`
}

/** The words that this page uses, with those of the model's start. @param {{start: string, kind: string}} config @param {any} world */
export function list({ start, kind }, { background }) {
  WORDS.t[1] = `How often the network improves its guess. ${STARTS[start].sentence}`
  const unused = [background === null ? 'ari' : '', kind === 'binary' ? '' : 'grey']
  const used = Object.keys(WORDS).filter((name) => !unused.includes(name)).map((name) => WORDS[name])
  byId('words').replaceChildren(...used.flatMap(([name, meaning]) => [make('dt', { text: name }), make('dd', { text: meaning })]))
}

/** Bubbles open by mouse, touch and keyboard, and close with Escape. */
export function explain() {
  const bubble = byId('bubble')
  /** @type {HTMLElement | null} */
  let open = null
  const close = () => {
    bubble.hidden = true
    open?.removeAttribute('aria-describedby')
    open = null
  }
  document.addEventListener('click', (event) => {
    const button = /** @type {HTMLElement} */ (event.target).closest?.('.help')
    if (!(button instanceof HTMLElement) || button === open) return close()
    event.preventDefault()
    close()
    open = button
    bubble.textContent = WORDS[button.dataset.about ?? '']?.[1] ?? ''
    bubble.hidden = false
    button.setAttribute('aria-describedby', 'bubble')
    const box = button.getBoundingClientRect()
    const left = Math.max(12, Math.min(innerWidth - bubble.offsetWidth - 12, box.left - 40))
    Object.assign(bubble.style, { left: `${left + scrollX}px`, top: `${box.bottom + scrollY + 8}px` })
  })
  document.addEventListener('keydown', (event) => event.key === 'Escape' && close())
}
