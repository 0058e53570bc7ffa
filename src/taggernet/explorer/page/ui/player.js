/** Shows one iteration after the other. Whatever else the visitor does ends it. */

export class Player {
  /** @param {import('./session.js').Session} session @param {(playing: boolean) => void} tell */
  constructor(session, tell) {
    this.session = session
    this.tell = tell
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined
    this.showing = false
    session.onChange(() => {
      if (!this.showing) this.stop()
    })
  }

  get playing() {
    return this.timer !== undefined
  }

  /** From the start to the last iteration. @param {number} pause milliseconds that each is shown */
  play(pause) {
    this.stop()
    this.show(0, pause)
    this.tell(true)
  }

  /** @param {number} iteration @param {number} pause */
  show(iteration, pause) {
    this.showing = true
    this.session.set({ shown: iteration })
    this.showing = false
    const last = this.session.history.length - 1
    this.timer = setTimeout(() => (iteration < last ? this.show(iteration + 1, pause) : this.stop()), pause)
  }

  stop() {
    if (!this.playing) return
    clearTimeout(this.timer)
    this.timer = undefined
    this.tell(false)
  }
}
