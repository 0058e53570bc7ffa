/** The human test on the page: a scene, ten digits to choose from, the score, and then how the network saw it. */
import { classProbabilities } from './class_table.js'
import { byId, make, percent, say } from './dom.js'
import { paint } from './pictures.js'
import { answered, BEST_HUMAN, errorOf, following, keep, newRound, restore, sceneOf, topTwo } from './quiz.js'

export class QuizView {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session
    const { world, tagger } = session
    this.active = world.name === 'textures' && world.objects === 2 && tagger.config.classes === 10
    byId('quiz').hidden = !this.active
    this.round = restore(localStorage)
    /** @type {number[]} */
    this.chosen = []
    /** @type {{number: number, state: import('../model/tagger.js').State, named: number[]} | undefined} */
    this.grouped = undefined
    /** @type {import('./pictures.js').Painter | undefined} */
    this.painter = undefined
    /** @type {any[]} */
    this.digits = []
    if (this.active) this.build()
  }

  build() {
    const { height, width } = this.session.world
    const canvas = (/** @type {string} */ label) => make('canvas', { width, height, role: 'img', 'aria-label': label })
    this.scene = canvas('Two digits, each with a texture, on a background with another')
    this.revealed = canvas('The same scene in the colours of the network’s groups')
    this.digits = Array.from({ length: 10 }, (_, digit) => make('button', { class: 'digit', 'aria-pressed': 'false', text: digit, onclick: () => this.choose(digit) }))
    this.answer = make('button', { class: 'primary', text: 'Answer', onclick: () => this.score() })
    this.next = make('button', { text: 'Skip', onclick: () => this.go(following(this.round)) })
    this.open = make('button', { class: 'link', text: 'Look at its groups', onclick: () => this.look() })
    this.said = make('p', { class: 'said', role: 'status', 'aria-live': 'polite' })
    this.tally = make('div', { class: 'tally' })
    this.reset = make('button', { class: 'link', text: 'Start over', onclick: () => this.go(newRound(Math.floor(Math.random() * 1e6))) })
    this.after = make('figure', { class: 'picture' }, make('figcaption', { text: 'How the network saw it' }), this.revealed, this.open)
    byId('quiz-body').replaceChildren(
      make('p', { class: 'about', text: 'Two handwritten digits, one in front of the other, each with a texture of its own. Which ones? The paper asked five people; the best of them, after days of practice, still missed 30 %.' }),
      make('div', { class: 'quiz' },
        make('figure', { class: 'picture' }, make('figcaption', { text: 'What you see' }), this.scene),
        make('div', { class: 'quiz-side' },
          make('div', { class: 'digits', role: 'group', 'aria-label': 'Choose one or two digits' }, ...this.digits),
          make('div', { class: 'row' }, this.answer, this.next), this.said, this.tally, this.reset),
        this.after))
  }

  /** @param {number} digit */
  choose(digit) {
    if (this.round.answered) return
    this.chosen = this.chosen.includes(digit) ? this.chosen.filter((other) => other !== digit) : [...this.chosen, digit].slice(-2)
    this.render(this.painter)
  }

  /** @param {import('./quiz.js').Round} round */
  go(round) {
    this.round = round
    this.chosen = []
    keep(localStorage, round)
    say(this.said, '')
    this.render(this.painter)
  }

  /** The scene shown, and what the network says of it. */
  shown() {
    const { world, tagger } = this.session
    const number = sceneOf(this.round, world.count)
    const painted = world.paint(world.test(number))
    if (this.grouped?.number !== number) {
      const history = tagger.group(painted.x, tagger.card.groups, tagger.card.iterations), state = history[history.length - 1]
      this.grouped = { number, state, named: topTwo(classProbabilities(/** @type {Float32Array} */ (tagger.classShares(state)), 10)) }
    }
    return { ...this.grouped, painted }
  }

  score() {
    if (!this.chosen.length || this.round.answered) return
    const { painted, named } = this.shown()
    this.round = answered(this.round, errorOf(this.chosen, painted.classes), errorOf(named, painted.classes))
    keep(localStorage, this.round)
    const truth = [...painted.classes].reverse().join(' and '), yours = errorOf(this.chosen, painted.classes)
    const verdict = yours === 0 ? 'Right!' : yours === 1 ? 'Not this time.' : 'Half right.'
    say(this.said, `${verdict} It was ${truth}; the network said ${named.join(' and ')}.`)
    this.render(this.painter)
    this.next.focus()
  }

  /** Show the scene in the large pictures. */
  look() {
    const { world } = this.session
    this.session.set({ scene: world.test(sceneOf(this.round, world.count)), source: 'test' })
    byId('stage').scrollIntoView({ block: 'start' })
  }

  /** @param {import('./pictures.js').Painter | undefined} painter */
  render(painter) {
    if (!this.active || !painter) return
    this.painter = painter
    const { height, width } = this.session.world, { round } = this
    const { painted, state } = this.shown()
    paint(this.scene, painter.input(painted.x), height, width)
    this.after.classList.toggle('waiting', !round.answered)
    paint(this.revealed, round.answered ? painter.groups(state, new Set()) : () => painter.faint, height, width)
    this.revealed.setAttribute('aria-label', round.answered ? 'The scene in the colours of the network’s groups' : 'Shown after you answer')
    this.digits.forEach((button, digit) => {
      button.setAttribute('aria-pressed', String(this.chosen.includes(digit)))
      button.classList.toggle('right', round.answered && painted.classes.includes(digit))
      button.disabled = round.answered
    })
    this.answer.disabled = round.answered || !this.chosen.length
    this.answer.classList.toggle('primary', !round.answered)
    this.next.classList.toggle('primary', round.answered)
    say(this.next, round.answered ? 'Next scene' : 'Skip')
    this.tally.replaceChildren(...this.lines())
    // They keep their place, so that nothing moves under the finger that answers.
    this.reset.style.visibility = round.scenes ? 'visible' : 'hidden'
    this.open.style.visibility = round.answered ? 'visible' : 'hidden'
  }

  lines() {
    const { scenes, you, network } = this.round
    const line = (/** @type {string} */ who, /** @type {number | null} */ error) => {
      const bar = make('i')
      bar.style.width = `${100 * (error ?? 0)}%`
      return make('div', { class: 'tally-line' }, make('span', { text: who }), make('span', { class: 'track' }, bar), make('b', { text: error === null ? '–' : percent(error) }))
    }
    const share = (/** @type {number} */ sum) => (scenes ? sum / scenes : null)
    return [make('p', { class: 'label', text: scenes ? `Digits missed, after ${scenes} scene${scenes > 1 ? 's' : ''}` : 'Digits missed' }),
      line('You', share(you)), line('The network', share(network)), line('Best human of the paper', BEST_HUMAN)]
  }
}
