/** Types into a terminal and closes it. */
export interface Keyboard {
  type(data: string): void
  close(): Promise<void>
}

/** Longer than any expected text. */
const longestTail = 256
/** Milliseconds. */
const patience = 120_000

/** A terminal as its user sees it: sends input, and waits for output. */
export class Screen {
  /** Number of characters received. */
  shown = 0
  #tail = ''
  #wanted: { isThere: () => boolean; resolve: () => void; reject: (error: Error) => void } | null = null
  readonly #keyboard: Keyboard

  constructor(keyboard: Keyboard) {
    this.#keyboard = keyboard
  }

  show(data: string): void {
    this.shown += data.length
    this.#tail = (this.#tail + data).slice(-longestTail)
    if (this.#wanted?.isThere()) this.#wanted.resolve()
  }

  /** The session has ended: nothing more will be shown. */
  end(why: string): void {
    this.#wanted?.reject(new Error(`a terminal ended: ${why}`))
  }

  type(data: string): void {
    this.#keyboard.type(data)
  }

  /** Types, and resolves with the milliseconds until the output ends with `end`. */
  async answer(typed: string, end: string): Promise<number> {
    this.#tail = ''
    const start = performance.now()
    const came = this.#until(() => this.#tail.endsWith(end))
    this.type(typed)
    await came
    return performance.now() - start
  }

  /** Resolves once this number of further characters has arrived. */
  async more(characters: number): Promise<void> {
    const goal = this.shown + characters
    await this.#until(() => this.shown >= goal)
  }

  async close(): Promise<void> {
    await this.#keyboard.close()
  }

  #until(isThere: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('a terminal did not respond')), patience)
      this.#wanted = {
        isThere,
        resolve: () => {
          clearTimeout(late)
          this.#wanted = null
          resolve()
        },
        reject: (error) => {
          clearTimeout(late)
          reject(error)
        },
      }
    })
  }
}
