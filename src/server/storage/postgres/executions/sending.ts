import { faultPoint } from '#fault-point'
import type { Clock } from '../../../../disk/clock.ts'
import { byDueAt, sentPart } from '../../executions/transitions.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import type { LinkClaim } from '../../ports/cluster.ts'
import type { Execution, Executions, Offer, RunningExecution } from '../../ports/executions.ts'
import { batched } from '../connection/batched.ts'
import { columns, keyOf, type Row, type Stored, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'

/** Hosts per statement: few enough to finish within its timeout on a slow store. */
const maxHosts = 500

/** Due executions of each host, in order and up to its capacity, and those marked by takes whose answers were lost. */
const takeStatement = {
  name: 'executions take',
  text: `select ${columns} from rsm.executions_take($1::jsonb, $2::bigint) e`,
}

const takeOverStatement = {
  name: 'executions take over',
  text: `select ${columns} from rsm.executions_take_over($1::jsonb) e`,
}

interface TakeOver {
  readonly claim: LinkClaim
  readonly except: ReadonlySet<string>
}

/** Takes executions for this server's links, or takes them over (docs/inside/sent-once.md). */
export function createSending(
  steps: Steps,
): Pick<Executions, 'take' | 'takeOver'> & { inDoubtOf: (hostIds: readonly number[]) => number[] } {
  const { database, clock, log } = steps.deps
  const inDoubt = new InDoubt(clock)
  /** Number of takes of this server so far. */
  let attempts = 0

  async function send(offers: readonly Offer[]): Promise<Row[]> {
    const at = steps.now()
    const attempt = ++attempts
    const input = offers.map(({ claim, capacity, agent }) => {
      const lost = inDoubt.attemptsOf(claim)
      const offered = { e: claim.epoch, c: capacity, p: sentPart(at, agent) }
      return [claim.hostId, lost === null ? offered : { ...offered, d: lost }]
    })
    faultPoint('server.sent.before')
    const askedAt = clock.monotonic()
    try {
      const rows = await database.ask<Row>('write', takeStatement, [
        jsonbSafe(Object.fromEntries(input)),
        attempt,
      ])
      for (const { claim } of offers) inDoubt.answered(claim, askedAt)
      return rows
    } catch (error) {
      for (const { claim } of offers) inDoubt.add(claim, attempt)
      throw error
    }
  }

  /** Stops at a failure, but returns what was taken before it. The sweep retries the other hosts. */
  async function sendInPieces(offers: readonly Offer[]): Promise<Stored[]> {
    const stored: Stored[] = []
    for (let at = 0; at < offers.length; at += maxHosts)
      try {
        stored.push(...(await send(offers.slice(at, at + maxHosts))).map(storedOf))
      } catch (error) {
        if (stored.length === 0) throw error
        log.warn({ err: error }, 'executions of some hosts could not be marked as sent')
        break
      }
    return stored
  }

  async function takeAll(asked: readonly (readonly Offer[])[]): Promise<Execution[][]> {
    const offers = newestOf(asked.flat())
    if (offers.length === 0) return asked.map(() => [])
    const stored = await sendInPieces(offers)
    if (stored.length > 0) faultPoint('server.sent.after')
    for (const one of stored) steps.claimed.take(one)
    steps.publisher.changed(stored.map((one) => ({ stored: one, hasMore: false })))
    const taken = stored.map(({ execution }) => execution).sort(byDueAt)
    const hosts = asked.map((its) => its.map(({ claim }) => claim.hostId))
    return share(hosts, taken, ({ hostId }) => hostId)
  }

  async function takeOverAll(asked: readonly TakeOver[]): Promise<RunningExecution[][]> {
    const input = newestOf(asked).map(({ claim, except }) => [
      claim.hostId,
      { e: claim.epoch, x: [...except].map((id) => keyOf(id).taskId) },
    ])
    const rows = await database.ask<Row>('write', takeOverStatement, [jsonbSafe(Object.fromEntries(input))])
    const stored = rows.map(storedOf)
    for (const one of stored) {
      const previous = steps.claimed.get(one.execution.id)
      const own = steps.claimed.take(one)
      own.isReceived ||= previous?.isReceived === true
      own.output.incomplete = previous?.output.incomplete === true
    }
    return asked.map(({ claim }) =>
      stored.filter(({ epoch }) => epoch === claim.epoch).map((one) => steps.claimed.withOutput(one)),
    )
  }

  const takeOver = batched(takeOverAll, maxHosts)
  return {
    take: batched(takeAll, maxHosts, (offers) => offers.length),
    takeOver: (claim, except) => takeOver({ claim, except }),
    inDoubtOf: (hostIds) => inDoubt.of(hostIds),
  }
}

/** Keeps the newest claim of each host. */
function newestOf<T extends { claim: LinkClaim }>(all: readonly T[]): T[] {
  const byHost = new Map<number, T>()
  for (const one of all) {
    const other = byHost.get(one.claim.hostId)
    if (!other || other.claim.epoch <= one.claim.epoch) byHost.set(one.claim.hostId, one)
  }
  return [...byHost.values()].sort((a, b) => a.claim.hostId - b.claim.hostId)
}

/** Gives the rows of each host to the first caller that asked for it. */
function share<T>(
  asked: readonly (readonly number[])[],
  all: readonly T[],
  hostOf: (one: T) => number,
): T[][] {
  const places = new Map<number, number>()
  for (const [place, hostIds] of asked.entries())
    for (const hostId of hostIds) if (!places.has(hostId)) places.set(hostId, place)
  const shares = asked.map((): T[] => [])
  for (const one of all) shares[places.get(hostOf(one)) ?? 0]?.push(one)
  return shares
}

/** Milliseconds after the first answered take in which a lost statement may still run: PostgreSQL ends each after 10 s. */
const longestDoubt = 30_000

interface Doubt {
  readonly epoch: number
  /** Ranges of unanswered attempts, because takes may fail for hours. */
  readonly attempts: readonly (readonly [from: number, to: number])[]
  /** Monotonic milliseconds; null before the first answered take. */
  until: number | null
}

/** Attempts to send whose answers were lost, by link (docs/inside/sent-once.md). */
export class InDoubt {
  readonly #clock: Clock
  readonly #byHost = new Map<number, Doubt>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add({ hostId, epoch }: LinkClaim, attempt: number): void {
    const doubt = this.#byHost.get(hostId)
    if (doubt && doubt.epoch > epoch) return
    const earlier = doubt?.epoch === epoch ? doubt.attempts : []
    const last = doubt?.until === null ? earlier.at(-1) : undefined
    const attempts = last
      ? [...earlier.slice(0, -1), [last[0], attempt] as const]
      : [...earlier, [attempt, attempt] as const]
    this.#byHost.set(hostId, { epoch, attempts, until: null })
  }

  /** Attempts of this link as an int8multirange; a newer link ends the doubt, because its HELLO settles them. */
  attemptsOf({ hostId, epoch }: LinkClaim): string | null {
    const doubt = this.#byHost.get(hostId)
    if (doubt?.epoch === epoch) return `{${doubt.attempts.map(([from, to]) => `[${from},${to}]`).join()}}`
    if (doubt && doubt.epoch < epoch) this.#byHost.delete(hostId)
    return null
  }

  /** Filters hosts with attempts in doubt. */
  of(hostIds: readonly number[]): number[] {
    return this.#byHost.size === 0 ? [] : hostIds.filter((hostId) => this.#byHost.has(hostId))
  }

  /** Ends the doubt if this take was asked after `until`, so that it saw all marked rows. `askedAt`: monotonic milliseconds. */
  answered({ hostId, epoch }: LinkClaim, askedAt: number): void {
    const doubt = this.#byHost.get(hostId)
    if (doubt?.epoch !== epoch) return
    doubt.until ??= this.#clock.monotonic() + longestDoubt
    if (askedAt >= doubt.until) this.#byHost.delete(hostId)
  }
}
