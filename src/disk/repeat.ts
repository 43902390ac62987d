export interface Repeated {
  /** Runs the work now; joins a run under way. */
  now(): Promise<void>
  /** Resolves once the run under way has ended. */
  stop(): Promise<void>
}

/** Runs `work` every `milliseconds`, never twice at once. The next run retries a failed one. */
export function repeat(
  milliseconds: number,
  work: () => Promise<unknown>,
  failed: (error: unknown) => void,
): Repeated {
  let running: Promise<void> | null = null
  function now(): Promise<void> {
    running ??= work()
      .then(() => undefined, failed)
      .finally(() => {
        running = null
      })
    return running
  }
  const timer = setInterval(() => void now(), milliseconds).unref()
  return {
    now,
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
