import type { AuditEntry } from '../../core/audit.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { sourceOf } from '../access/client-address.ts'
import { bounded, systemActor } from '../storage/audit-entry.ts'
import type { AuditEvent } from '../storage/ports/audit-log.ts'

const window = 60_000
/** Refusals of one kind written individually per window: of one source, and of all sources together. */
const singlyOfSource = 60
const singlyOfAll = 600
/** Sources counted separately in a window; further ones share a budget, so that no flood fills memory or disk. */
const mostSources = 10_000
/** Counters per window, of one source and of all; past these limits, refusals are counted by action only. */
const mostCountsOfSource = 60
const mostCounts = 1000
const sweepInterval = 5000
/** Key of the budget that sources past the limit share. */
const others = ''

/** Each kind has its own budget, so that a flood without tokens does not hide refusals of known callers. */
const kinds = ['login', 'access', 'operation', 'knownAccess', 'knownOperation'] as const
type Kind = (typeof kinds)[number]
type Singly = Record<Kind, number>

/** Refusals that become one entry with their count. */
interface Folded {
  event: AuditEvent
  from: string
  count: number
}

interface Source {
  singly: Singly
  counts: number
}

interface Window {
  /** Monotonic milliseconds. */
  opened: number
  singly: Singly
  sources: Map<string, Source>
  folded: Map<string, Folded>
}

const none = () => Object.fromEntries(kinds.map((kind) => [kind, 0])) as Singly

function kindOf({ action, actor }: AuditEvent): Kind {
  if (action === 'user.login') return 'login'
  if (actor.type === 'anonymous') return action === 'access.refuse' ? 'access' : 'operation'
  return action === 'access.refuse' ? 'knownAccess' : 'knownOperation'
}

/** Audits refusals and failures, so that a flood neither fills the disk nor hides other entries. */
export interface Refusals {
  /** Resolves when the entry is durable or counted. `source`: the address or agent that may flood. */
  note(source: string, event: AuditEvent): Promise<void>
  /** Writes the counts of an ended window; called by a timer and by tests. */
  sweep(): Promise<void>
  /** Writes all counts. */
  close(): Promise<void>
}

export function createRefusals(append: (event: AuditEvent) => Promise<AuditEntry>, clock: Clock): Refusals {
  let current: Window | null = null

  async function sweep(all = false): Promise<void> {
    const ended = current
    if (ended === null || (!all && clock.monotonic() - ended.opened < window)) return
    current = null
    const to = isoTime(clock.now())
    await Promise.all(
      [...ended.folded.values()].map(({ event, from, count }) =>
        append({ ...event, at: to, detail: { ...event.detail, folded: count, from, to } }),
      ),
    )
  }

  // The log itself counts entries that the disk refuses.
  const sweepAside = () => void sweep().catch(() => undefined)
  const timer = setInterval(sweepAside, sweepInterval)
  timer.unref()

  return {
    async note(given, unbounded) {
      sweepAside()
      // Truncate before keeping: a refused value may be as long as a request body.
      const event = { ...bounded(unbounded), at: isoTime(clock.now()) }
      current ??= { opened: clock.monotonic(), singly: none(), sources: new Map(), folded: new Map() }
      const { singly, sources, folded } = current
      const named = sourceOf(given)
      const name = sources.has(named) || sources.size < mostSources ? named : others
      const source = sources.get(name) ?? { singly: none(), counts: 0 }
      sources.set(name, source)
      const kind = kindOf(event)
      if (source.singly[kind] < singlyOfSource && singly[kind] < singlyOfAll) {
        source.singly[kind]++
        singly[kind]++
        await append(event)
        return
      }
      fold(folded, source, name, event)
    },
    sweep: () => sweep(),
    async close() {
      clearInterval(timer)
      await sweep(true).catch(() => undefined)
    },
  }

  /** Counts refusals of the same source, action, actor and object; the last one is written for all. */
  function fold(folded: Window['folded'], source: Source, name: string, event: AuditEvent): void {
    const { action, actor, object } = event
    const key = JSON.stringify([name, action, actor.type, actor.id, actor.name, object])
    const one = name === others ? { ...event, ip: null } : event
    if (folded.has(key)) return count(folded, key, one)
    if (source.counts < mostCountsOfSource && folded.size < mostCounts) {
      source.counts++
      return count(folded, key, one)
    }
    // Over the limit: count by action only, without the details of one caller.
    count(folded, action, { ...event, actor: systemActor, ip: null, object: null, detail: { mixed: true } })
  }

  function count(folded: Window['folded'], key: string, event: AuditEvent): void {
    const known = folded.get(key) ?? { from: isoTime(clock.now()), count: 0 }
    folded.set(key, { event, from: known.from, count: known.count + 1 })
  }
}
