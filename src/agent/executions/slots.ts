/** How many executions run at once, and whether another may begin. */
export class Slots {
  readonly #most: number
  #taken = 0
  #isDraining = false
  #whenIdle: (() => void) | undefined

  constructor(most: number) {
    this.#most = most
  }

  get isFree(): boolean {
    return !this.#isDraining && this.#taken < this.#most
  }

  /** One that an earlier agent has begun takes its slot even where none is free. */
  take(): void {
    this.#taken += 1
  }

  release(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#whenIdle?.()
  }

  /** None is free from now on. Settles when none is taken. */
  drain(): Promise<void> {
    this.#isDraining = true
    if (this.#taken === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenIdle = resolve
    })
  }
}
