import type { AuditEntry } from '../../core/audit.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { sourceOf } from '../access/client-address.ts'
import { bounded, systemActor } from '../storage/audit/entry.ts'
import type { AuditEvent } from '../storage/ports/audit-log.ts'

const window = 60_000
/** Within a window so many of one kind are written singly of one source, and of all sources together. */
const singlyOfSource = 60
const singlyOfAll = 600
/** Sources told apart in a window; those beyond share one budget, so that no flood fills memory or disk. */
const mostSources = 10_000
/** Counts kept apart in a window, of one source and of all; what is beyond is counted by its action alone. */
const mostCountsOfSource = 60
const mostCounts = 1000
const sweepInterval = 5000
/** The source of all those that are not told apart any more. */
const others = ''

/** Each has budgets of its own, so that a flood of one does not hide the others: least of all of those who have a token. */
const kinds = ['login', 'access', 'operation', 'knownAccess', 'knownOperation'] as const
type Kind = (typeof kinds)[number]
type Singly = Record<Kind, number>

/** What was not written singly, and is going to be one entry with its count. */
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

/** Writes down what was refused or failed, without letting a flood of it fill the disk or hide what matters. */
export interface Refusals {
  /** Resolves when the entry is durable, or counted. `source` is who may flood: an address, an agent. */
  note(source: string, event: AuditEvent): Promise<void>
  /** Writes the counts of a window that has ended; called by a timer, and by tests. */
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

  // What the disk refuses is counted by the log itself.
  const sweepAside = () => void sweep().catch(() => undefined)
  const timer = setInterval(sweepAside, sweepInterval)
  timer.unref()

  return {
    async note(given, unbounded) {
      sweepAside()
      // Cut before it is kept: what was refused may be as long as a body.
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

  /** Counts it with its like: the same source, action, actor and object. The last one stands for all. */
  function fold(folded: Window['folded'], source: Source, name: string, event: AuditEvent): void {
    const { action, actor, object } = event
    const key = JSON.stringify([name, action, actor.type, actor.id, actor.name, object])
    const one = name === others ? { ...event, ip: null } : event
    if (folded.has(key)) return count(folded, key, one)
    if (source.counts < mostCountsOfSource && folded.size < mostCounts) {
      source.counts++
      return count(folded, key, one)
    }
    // Of several callers and things: none of them may stand for the others.
    count(folded, action, { ...event, actor: systemActor, ip: null, object: null, detail: { mixed: true } })
  }

  function count(folded: Window['folded'], key: string, event: AuditEvent): void {
    const known = folded.get(key) ?? { from: isoTime(clock.now()), count: 0 }
    folded.set(key, { event, from: known.from, count: known.count + 1 })
  }
}
