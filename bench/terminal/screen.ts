/** How a terminal is typed into and given up. */
export interface Keyboard {
  type(data: string): void
  close(): Promise<void>
}

/** Longer than anything that is waited for. */
const longestTail = 256
/** Milliseconds. */
const patience = 120_000

/** One terminal as its user has it: what is typed, and when something has come. */
export class Screen {
  /** Characters that have come. */
  shown = 0
  #tail = ''
  #wanted: { isThere: () => boolean; resolve: () => void } | null = null
  readonly #keyboard: Keyboard

  constructor(keyboard: Keyboard) {
    this.#keyboard = keyboard
  }

  show(data: string): void {
    this.shown += data.length
    this.#tail = (this.#tail + data).slice(-longestTail)
    if (this.#wanted?.isThere()) this.#wanted.resolve()
  }

  type(data: string): void {
    this.#keyboard.type(data)
  }

  /** Types, and settles with the milliseconds until the last of what has come ends so. */
  async answer(typed: string, end: string): Promise<number> {
    this.#tail = ''
    const start = performance.now()
    const came = this.#until(() => this.#tail.endsWith(end))
    this.type(typed)
    await came
    return performance.now() - start
  }

  /** Settles when so many characters have come. */
  async more(characters: number): Promise<void> {
    const goal = this.shown + characters
    await this.#until(() => this.shown >= goal)
  }

  async close(): Promise<void> {
    await this.#keyboard.close()
  }

  #until(isThere: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('a terminal did not answer')), patience)
      this.#wanted = {
        isThere,
        resolve: () => {
          clearTimeout(late)
          this.#wanted = null
          resolve()
        },
      }
    })
  }
}
