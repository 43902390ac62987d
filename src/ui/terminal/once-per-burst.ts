/** A sentence that was not heard for so many milliseconds is news again. */
const pause = 5_000
/** Sentences of one burst; further ones are not said. */
const most = 8

/** Filters refusals that come by the hundred, one for each frame: every sentence passes once per burst. */
export class OncePerBurst {
  /** When each was last heard, in milliseconds. */
  readonly #heard = new Map<string, number>()

  isNews(sentence: string, now = performance.now()): boolean {
    for (const [each, at] of this.#heard) if (now - at >= pause) this.#heard.delete(each)
    const isNews = !this.#heard.has(sentence)
    if (isNews && this.#heard.size >= most) return false
    this.#heard.set(sentence, now)
    return isNews
  }
}
