import type { AuditEntry } from '../../core/protocol/http/audit.ts'
import type { Clock } from '../clock.ts'
import { isoTime } from '../clock.ts'
import type { AuditEvent } from './event.ts'

const window = 60_000
/** So many failures of one source are written singly within a window; the rest becomes one entry when it ends. */
const singly = 60
/** Sources told apart; those beyond share one count, so that no flood fills memory or disk. */
const mostSources = 10_000
const sweepInterval = 5000

interface Source {
  /** Monotonic milliseconds. */
  opened: number
  count: number
  folded: { event: AuditEvent; from: string; count: number } | null
}

/** Writes down what was refused or failed, without letting a flood of it fill the disk. */
export interface Refusals {
  /** Resolves when the entry is durable, or counted. `source` is who may flood: an address, an agent. */
  note(source: string, event: AuditEvent): Promise<void>
  /** Writes the counts of windows that have ended; called by a timer, and by tests. */
  sweep(): Promise<void>
  /** Writes all counts. */
  close(): Promise<void>
}

export function createRefusals(append: (event: AuditEvent) => Promise<AuditEntry>, clock: Clock): Refusals {
  const sources = new Map<string, Source>()

  async function end(name: string, source: Source): Promise<void> {
    sources.delete(name)
    if (!source.folded) return
    const { event, from, count } = source.folded
    const detail = { ...event.detail, folded: count, from, to: isoTime(clock.now()) }
    await append({ ...event, detail, ...(name === '' ? { ip: null } : {}) })
  }

  async function sweep(all = false): Promise<void> {
    const now = clock.monotonic()
    const over = [...sources].filter(([, { opened }]) => all || now - opened >= window)
    await Promise.all(over.map(([name, source]) => end(name, source)))
  }

  const timer = setInterval(() => {
    // What the disk refuses is counted by the log itself.
    sweep().catch(() => undefined)
  }, sweepInterval)
  timer.unref()

  return {
    async note(given, event) {
      const now = clock.monotonic()
      const name = sources.has(given) || sources.size < mostSources ? given : ''
      let source = sources.get(name)
      if (source && now - source.opened >= window) {
        await end(name, source)
        source = sources.get(name)
      }
      if (!source) {
        source = { opened: now, count: 0, folded: null }
        sources.set(name, source)
      }
      if (++source.count <= singly) {
        await append(event)
        return
      }
      // The last one stands for all: what it was, and how many there were.
      const { from, count } = source.folded ?? { from: isoTime(clock.now()), count: 0 }
      source.folded = { event, from, count: count + 1 }
    },
    sweep: () => sweep(),
    async close() {
      clearInterval(timer)
      await sweep(true).catch(() => undefined)
    },
  }
}
