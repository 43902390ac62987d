/** Lets `permits` callers proceed at a time, in the order of the calls. */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(permits: number) {
    this.#free = permits
  }

  get isFree(): boolean {
    return this.#free > 0
  }

  get queueLength(): number {
    return this.#waiting.size
  }

  /** Settles like `work`: a failure never affects the next caller. Rejects like `acquire`. */
  async run<T>(work: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal)
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Resolves to the function that releases the permit. Rejects with the reason of `signal` if it aborts first. */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted()
    const release = this.tryAcquire()
    if (release !== null) return release
    await new Promise<void>((resolve, reject) => {
      const proceed = () => {
        signal?.removeEventListener('abort', cancel)
        resolve()
      }
      const cancel = () => {
        this.#waiting.delete(proceed)
        reject(signal?.reason)
      }
      this.#waiting.add(proceed)
      signal?.addEventListener('abort', cancel)
    })
    return this.#releaseOnce()
  }

  /** Returns the function that releases the permit; null if none is free. */
  tryAcquire(): (() => void) | null {
    if (this.#free === 0) return null
    this.#free -= 1
    return this.#releaseOnce()
  }

  #releaseOnce(): () => void {
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const [next] = this.#waiting
      if (next === undefined) this.#free += 1
      else {
        this.#waiting.delete(next)
        next()
      }
    }
  }
}

/** Runs one piece of work at a time, in the order of the calls. */
export class Mutex extends Semaphore {
  constructor() {
    super(1)
  }

  /** Resolves once the work of all earlier calls has ended. */
  async idle(): Promise<void> {
    await this.run(() => undefined)
  }
}
