import type { Clock } from '../clock.ts'

const window = 60_000
const limit = 3
const refusal = 5 * 60_000

/**
 * Three replacements of a link within a minute are two agents with one identity: new links are then refused for five
 * minutes, and the one that holds the link keeps it (contract §6, reliability F12).
 */
export function createReplacements(clock: Clock, changed: (hostId: number, duplicate: boolean) => void) {
  const recent = new Map<number, number[]>()
  const refused = new Map<number, number>()
  return {
    replaced(hostId: number): void {
      const now = clock.monotonic()
      const times = (recent.get(hostId) ?? []).filter((time) => now - time < window)
      times.push(now)
      recent.set(hostId, times)
      if (times.length < limit) return
      recent.delete(hostId)
      refused.set(hostId, now + refusal)
      changed(hostId, true)
    },
    refuses: (hostId: number): boolean => clock.monotonic() < (refused.get(hostId) ?? 0),
    /** Called every few seconds: ends refusals whose time is over, whether or not anyone has come again. */
    tick(): void {
      for (const [hostId, until] of refused) {
        if (clock.monotonic() < until) continue
        refused.delete(hostId)
        changed(hostId, false)
      }
    },
  }
}
