import { LineBudget } from '../../core/line-budget.ts'
import { longestSentence } from '../../core/protocol/bounds.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Verify } from './verify.ts'

/** Refusals that are kept word by word; of more only the count. */
const mostKept = 16

interface Refused {
  readonly sentence: string
  /** Told over the present link. */
  isTold: boolean
}

/**
 * What this agent was asked to do without a good signature. Whoever asked has its answer; the true server hears of it
 * over a later link, and one that signs well has heard (reliability S05).
 */
export class Distrust {
  #refused: Refused[] = []
  #more = 0
  readonly #lines = new LineBudget()
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** As `verify`; a good signature tells that the server of this link has heard what was told over it. */
  watching(verify: Verify): Verify {
    return (type, payload) => {
      const doubt = verify(type, payload)
      if (doubt === null) this.#trusted()
      return doubt
    }
  }

  /** Notes that nothing was done: `what` names the message, `reason` is that of a `Doubt`. */
  note(what: string, reason: string): void {
    const leftOut = this.#lines.take('', this.#clock.monotonic())
    if (leftOut !== null) this.#log('ERROR', 'refused what the server asked for', { what, reason, leftOut })
    const sentence = `${reason} (${what}, ${new Date(this.#clock.now()).toISOString()})`
    if (this.#refused.length >= mostKept) this.#more += 1
    else this.#refused.push({ sentence: sentence.slice(0, longestSentence), isTold: false })
  }

  /** The sentences for a link that has just come up. */
  tell(): string[] {
    const sentences = this.#refused.map((refused) => {
      refused.isTold = true
      return refused.sentence
    })
    return this.#more > 0 ? [...sentences, `signature refused ${this.#more} times more`] : sentences
  }

  #trusted(): void {
    if (this.#refused.length === 0) return
    this.#refused = this.#refused.filter(({ isTold }) => !isTold)
    this.#more = 0
  }
}
