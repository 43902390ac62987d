import { isDeepStrictEqual } from 'node:util'
import type { AgentStatus } from '../../../../core/hosts/host.ts'
import type { Measure } from '../../../../core/hosts/host-status.ts'
import { BeatFacts } from '../../../../core/protocol/http/host-agent.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import type { Greeting } from '../../ports/presence.ts'
import type { KnownHost } from '../../presence/known-host.ts'

/** The newest link of a host that a server knows of. */
export interface LinkSign {
  /** Of its claim. */
  readonly epoch: number
  /** Epoch of the server that has it. */
  readonly server: number
  readonly isUp: boolean
  /** Milliseconds since 1970. */
  readonly lostAt: number | null
}

/** What servers tell each other of a host, in parts that each are told as a whole. Times are the store's, in milliseconds. */
export interface Signs {
  readonly beat: {
    readonly at: number | null
    readonly agentStatus: AgentStatus | null
    readonly uptime: number | null
    readonly says: Partial<BeatFacts>
    readonly clockOffset: number | null
  }
  readonly link: LinkSign | null
  readonly load: {
    readonly warns: readonly string[]
    readonly high: readonly Measure[]
    /** Milliseconds for which a measure has been high. */
    readonly highFor: Readonly<Record<string, number>>
  }
  readonly marks: { readonly duplicate: boolean; readonly revoked: boolean }
  readonly greeting: Greeting | null
}
export type Part = keyof Signs
export const parts: readonly Part[] = ['beat', 'link', 'load', 'marks', 'greeting']

/** Those parts of what is known. */
export function signsOf(
  known: KnownHost,
  link: LinkSign | null,
  of: Iterable<Part>,
  clock: Clock,
): Partial<Signs> {
  const now = clock.monotonic()
  const all: { [P in Part]: () => Signs[P] } = {
    beat: () => ({
      at: known.lastHeartbeatAt,
      agentStatus: known.agentStatus,
      uptime: known.uptime,
      says: known.says,
      clockOffset: known.clock.offsetSeconds(),
    }),
    link: () => link,
    load: () => ({
      warns: known.load.warns,
      high: known.high,
      highFor: Object.fromEntries(
        Object.entries(known.load.highSince).map(([name, since]) => [name, now - since]),
      ),
    }),
    marks: () => ({ duplicate: known.duplicate, revoked: known.revoked }),
    greeting: () => known.greeting,
  }
  return Object.fromEntries([...of].map((part) => [part, all[part]()]))
}

/** What another server has told becomes known here, but for the link and for when the host was heard. */
export function takeSigns(
  known: KnownHost,
  { beat, load, marks, greeting }: Partial<Signs>,
  clock: Clock,
): void {
  if (beat) takeBeat(known, beat)
  if (load) {
    const now = clock.monotonic()
    const since = Object.entries(load.highFor).map(([name, time]) => [name, now - time])
    known.load = { warns: load.warns, highSince: Object.fromEntries(since) }
    known.high = load.high
  }
  if (marks) Object.assign(known, marks)
  if (greeting !== undefined) known.greeting = greeting
}

function takeBeat(known: KnownHost, { at, agentStatus, uptime, says, clockOffset }: Signs['beat']): void {
  // A server that has just got the link may know of no heartbeat yet.
  if (agentStatus === null) {
    known.says = { ...known.says, linkFault: says.linkFault ?? null }
    return
  }
  known.agentStatus = agentStatus
  known.uptime = uptime
  known.says = says
  if (at === null) return
  // Twice: the comparison is of the last two heartbeats.
  const said = clockOffset === null ? undefined : isoTime(at + clockOffset * 1000)
  for (let beats = 0; beats < 2; beats++) known.clock.note(said, at)
}

/** Seconds by which what an agent says may differ from what follows from before, without being told. */
const tolerance = { uptime: 5, clockOffset: 1 }

/** What of a heartbeat other servers show and can't tell from the time. */
export function beatMarks(known: KnownHost) {
  const { agentStatus, uptime, lastHeartbeatAt, says, heardSinceStart } = known
  return { agentStatus, uptime, lastHeartbeatAt, says, heardSinceStart, offset: known.clock.offsetSeconds() }
}

const factNames = Object.keys(BeatFacts.properties) as (keyof BeatFacts)[]

/** Whether others have to be told of a heartbeat more than that it came; `before` is from before it. */
export function tellsMore(before: ReturnType<typeof beatMarks>, known: KnownHost): boolean {
  if (before.agentStatus !== known.agentStatus || !before.heardSinceStart) return true
  if (factNames.some((name) => !isDeepStrictEqual(before.says[name] ?? null, known.says[name] ?? null)))
    return true
  const passed = ((known.lastHeartbeatAt ?? 0) - (before.lastHeartbeatAt ?? 0)) / 1000
  const expected = before.uptime === null ? null : before.uptime + passed
  if (isApart(expected, known.uptime, tolerance.uptime)) return true
  return isApart(before.offset, known.clock.offsetSeconds(), tolerance.clockOffset)
}

const isApart = (one: number | null, other: number | null, by: number): boolean =>
  one === null || other === null ? one !== other : Math.abs(one - other) > by
