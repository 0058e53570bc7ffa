/** The two large pictures: drag and draw on the left one, point at an element on the right one. */
import { byId, make } from './dom.js'
import { penWidth, stroke } from './pen.js'
import { paint } from './pictures.js'
import { capitalised } from './words.js'

/** @typedef {import('./session.js').Session} Session */

export class Stage {
  /** @param {Session} session @param {(element: number | null) => void} inspect @param {(said: string) => void} tell */
  constructor(session, inspect, tell) {
    this.session = session
    this.inspect = inspect
    this.tell = tell
    this.tool = 'move'
    /** Which of the world's swatches the pen and new things have. */
    this.swatch = 0
    /** @type {number | null} */
    this.element = null
    this.board = byId('input-board')
    this.input = byId('input')
    this.output = byId('output')
    this.cursor = byId('cursor')
    this.board.replaceChildren(this.input)
    for (const canvas of [this.input, this.output]) canvas.style.aspectRatio = `${session.world.width} / ${session.world.height}`
    /** @type {HTMLButtonElement[]} */
    this.handles = []
    this.controller = new AbortController()
    this.listen()
  }

  /** Stop listening: another session takes over the page. */
  close() {
    this.controller.abort()
  }

  listen() {
    const { signal } = this.controller
    this.board.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => this.press(event), { signal })
    this.board.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => this.hover(event), { signal })
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      this.board.addEventListener(end, () => this.release(), { signal })
    }
    for (const board of [this.board, byId('groups-board')]) {
      // A finger has left as soon as it has tapped: what it tapped stays.
      board.addEventListener('pointerleave', (/** @type {PointerEvent} */ event) => event.pointerType !== 'touch' && this.point(null), { signal })
    }
    for (const move of ['pointerdown', 'pointermove']) {
      byId('groups-board').addEventListener(move, (/** @type {PointerEvent} */ event) => this.pointAt(event, this.output), { signal })
    }
    this.output.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => this.walk(event), { signal })
    this.output.addEventListener('focus', () => this.output.matches(':focus-visible') && this.point(this.element ?? this.middle()), { signal })
    this.output.addEventListener('blur', () => this.point(null), { signal })
  }

  middle() {
    const { height, width } = this.session.world
    return Math.floor(height / 2) * width + Math.floor(width / 2)
  }

  /** Row and column under the pointer. @param {PointerEvent} event @param {HTMLElement} canvas */
  cell(event, canvas) {
    const { left, top, width, height } = canvas.getBoundingClientRect()
    const { world } = this.session
    return {
      row: Math.floor(((event.clientY - top) / height) * world.height),
      col: Math.floor(((event.clientX - left) / width) * world.width),
    }
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button) return
    const { row, col } = this.cell(event, this.input)
    if (this.tool !== 'move') {
      this.board.setPointerCapture(event.pointerId)
      this.drawing = true
      this.last = undefined
      this.draw(row, col)
      return
    }
    const index = this.thingAt(row, col)
    if (index === null) return
    event.preventDefault()
    this.board.setPointerCapture(event.pointerId)
    const thing = this.session.view.scene.things[index]
    this.dragged = { index, row: thing.row - row, col: thing.col - col }
    this.board.classList.add('dragging')
  }

  /** The topmost thing at an element, or the nearest one whose box holds it. @param {number} row @param {number} col */
  thingAt(row, col) {
    const { world, view } = this.session
    const order = [...view.scene.things.keys()].reverse()
    const exact = order.find((index) => world.covers(view.scene.things[index], row, col))
    if (exact !== undefined) return exact
    const boxed = order.find((index) => {
      const thing = view.scene.things[index], { height, width } = world.size(thing)
      return world.name !== 'textures' && row >= thing.row && row < thing.row + height && col >= thing.col && col < thing.col + width
    })
    return boxed ?? null
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const { row, col } = this.cell(event, this.input)
    if (this.dragged) this.move(this.dragged.index, row + this.dragged.row, col + this.dragged.col)
    else if (this.drawing) this.draw(row, col)
    else {
      this.pointAt(event, this.input)
      this.board.classList.toggle('grab', this.tool === 'move' && this.thingAt(row, col) !== null)
    }
  }

  release() {
    this.dragged = undefined
    this.drawing = false
    this.board.classList.remove('dragging')
  }

  /** @param {number} index @param {number} row @param {number} col */
  move(index, row, col) {
    const { world, view } = this.session
    const before = view.scene.things[index], after = world.moved(before, row, col)
    if (after.row === before.row && after.col === before.col) return
    const things = view.scene.things.map((/** @type {any} */ thing, /** @type {number} */ i) => (i === index ? after : thing))
    this.session.follow({ ...view.scene, things, number: undefined })
  }

  /** A line from where the pen was last. @param {number} row @param {number} col */
  draw(row, col) {
    const { world, view, painted, tagger } = this.session
    const positions = stroke(this.last ?? [row, col], [row, col], world, penWidth(world, tagger.config.kind))
    this.last = [row, col]
    const scene = positions.length ? world.inked(view.scene, painted.x, positions, this.tool === 'pen', this.swatch) : null
    if (scene) this.session.follow(scene)
  }

  /** @param {PointerEvent} event @param {HTMLElement} canvas */
  pointAt(event, canvas) {
    const { row, col } = this.cell(event, canvas), { height, width } = this.session.world
    this.point(row >= 0 && col >= 0 && row < height && col < width ? row * width + col : null)
  }

  /** Look at one element. @param {number | null} element */
  point(element) {
    if (element !== null) this.element = element
    const { height, width } = this.session.world
    this.cursor.hidden = element === null
    if (element !== null) {
      Object.assign(this.cursor.style, {
        left: `${(100 * (element % width)) / width}%`, top: `${(100 * Math.floor(element / width)) / height}%`,
        width: `${100 / width}%`, height: `${100 / height}%`,
      })
    }
    this.inspect(element)
  }

  /** Arrow keys choose the element. @param {KeyboardEvent} event */
  walk(event) {
    const step = arrow(event), { height, width } = this.session.world
    if (!step) return
    event.preventDefault()
    const at = this.element ?? this.middle()
    const row = Math.max(0, Math.min(height - 1, Math.floor(at / width) + step[0]))
    const col = Math.max(0, Math.min(width - 1, (at % width) + step[1]))
    this.point(row * width + col)
  }

  /** A button on every thing, for the keyboard. */
  placeHandles() {
    const { world, view } = this.session
    const { things } = view.scene
    while (this.handles.length > things.length) this.handles.pop()?.remove()
    while (this.handles.length < things.length) {
      const index = this.handles.length
      const handle = make('button', { class: 'handle', onkeydown: (/** @type {KeyboardEvent} */ event) => this.push(event, index) })
      this.handles.push(handle)
      this.board.append(handle)
    }
    things.forEach((/** @type {any} */ thing, /** @type {number} */ index) => {
      const { height, width } = world.size(thing), handle = this.handles[index]
      handle.setAttribute('aria-label', `${capitalised(world.title(thing))}, row ${thing.row + 1}, column ${thing.col + 1}. Arrow keys move it, Delete takes it out.`)
      Object.assign(handle.style, {
        left: `${(100 * thing.col) / world.width}%`, top: `${(100 * thing.row) / world.height}%`,
        width: `${(100 * width) / world.width}%`, height: `${(100 * height) / world.height}%`,
      })
    })
  }

  /** @param {KeyboardEvent} event @param {number} index */
  push(event, index) {
    const step = arrow(event), { view, world } = this.session
    const thing = view.scene.things[index]
    if (step) {
      event.preventDefault()
      this.move(index, thing.row + step[0], thing.col + step[1])
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      event.preventDefault()
      const things = view.scene.things.filter((/** @type {any} */ _, /** @type {number} */ i) => i !== index)
      this.session.set({ scene: { ...view.scene, things, number: undefined }, source: 'own' })
      const next = this.handles[Math.min(index, things.length - 1)] ?? this.output
      next.focus()
      this.tell(`The ${world.title(thing)} is taken out.`)
    }
  }

  /** @param {import('./pictures.js').Painter} painter */
  render(painter) {
    const { world, seen, state, view } = this.session
    const { height, width } = world
    paint(this.input, painter.input(seen), height, width)
    paint(this.output, painter.groups(state, view.hidden), height, width)
    this.placeHandles()
    this.board.classList.toggle('drawing', this.tool !== 'move')
    if (!this.cursor.hidden) this.inspect(this.element)
  }
}

/** Rows and columns that an arrow key goes. @param {KeyboardEvent} event @returns {[number, number] | undefined} */
function arrow({ key }) {
  return /** @type {Record<string, [number, number]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] })[key]
}
