import { setTimeout as delay } from 'node:timers/promises'

/** Milliseconds before a stopped process exits despite open handles. */
const linger = 2_000
/** Milliseconds for an interrupted start to finish, so that it can be stopped in order. */
const startPatience = 500

/** Aborts on the first SIGINT or SIGTERM, with `hangUp` also SIGHUP; a second one exits at once. */
export function stopSignal({ hangUp = false } = {}): AbortSignal {
  const stopping = new AbortController()
  const codes = { SIGINT: 130, SIGTERM: 143, ...(hangUp ? { SIGHUP: 129 } : {}) }
  for (const [name, code] of Object.entries(codes))
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(code)
      stopping.abort()
    })
  return stopping.signal
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** Call after closing everything, so that a leaked handle cannot keep a stopped service alive. */
export function endSoon(): void {
  setTimeout(() => process.exit(), linger).unref()
}

/**
 * Resolves with the started server, or with null if `stop` aborts while the start still waits, e.g. for an unresponsive
 * database. The process may then exit, because a start survives being killed.
 */
export function startedBefore<T>(stop: AbortSignal, starting: Promise<T>): Promise<T | null> {
  const givenUp = aborted(stop).then(() => delay(startPatience, null, { ref: false }))
  return Promise.race([starting, givenUp])
}
