import { setTimeout as delay } from 'node:timers/promises'

/** How long a process that has closed everything may linger on something forgotten, in milliseconds. */
const linger = 2_000
/** Milliseconds that an interrupted start gets to finish, so that it is stopped in order. */
const startPatience = 500

/** Aborts on the first SIGINT or SIGTERM, and SIGHUP if that is not taken otherwise; a second one ends the process at once. */
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

/** After everything was closed: a forgotten handle must not keep a stopped service alive. */
export function endSoon(): void {
  setTimeout(() => process.exit(), linger).unref()
}

/**
 * Resolves with the started server, or with null if `stop` comes first and the start still waits, for example for a silent
 * database. The process may end then, because a start survives a kill.
 */
export function startedBefore<T>(stop: AbortSignal, starting: Promise<T>): Promise<T | null> {
  const givenUp = aborted(stop).then(() => delay(startPatience, null, { ref: false }))
  return Promise.race([starting, givenUp])
}
