/** The server answers within so long, or the way to it is cut. */
const patience = 8_000

let asking: Promise<boolean> | undefined

async function ask(): Promise<boolean> {
  try {
    await fetch('api/health', { cache: 'no-store', signal: AbortSignal.timeout(patience) })
    return true
  } catch {
    return false
  } finally {
    asking = undefined
  }
}

/** Whether the server can be reached: a browser tells nobody of a WebSocket whose path is dead. All tabs ask once. */
export function isReachable(): Promise<boolean> {
  return (asking ??= ask())
}
