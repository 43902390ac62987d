import { RsmError } from '../../core/errors.ts'
import type { Metrics } from '../../core/hosts/host.ts'
import { longestReason } from '../../core/protocol/bounds.ts'
import type { AgentAck, AgentConfig, HeartbeatRequest, SystemFacts } from '../../core/protocol/http/agent.ts'
import type { OwnFacts } from '../../core/protocol/http/hosts.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { shortened } from '../../core/text/pieces.ts'
import type { Clock } from '../clock.ts'
import { type AgentBackoff, agentBackoff, revokedDelay } from '../link/backoff.ts'
import type { ServerApi } from '../link/server-api.ts'
import type { Log } from '../log.ts'
import { healthOf, type MetricsBuffer } from './metrics.ts'

/** Seconds: below, the agent would poll without a pause; above, it would not notice a later change. */
const [shortest, longest] = [1, 86_400]

interface Intervals {
  readonly heartbeatInterval: number
  readonly metricsInterval: number
}

function bounded({ heartbeatInterval, metricsInterval }: Intervals): Intervals {
  const within = (seconds: number) => Math.min(Math.max(Number(seconds) || shortest, shortest), longest)
  return { heartbeatInterval: within(heartbeatInterval), metricsInterval: within(metricsInterval) }
}

/** Heartbeats between two polls of the configuration without a version change (base protocol). */
const pollEvery = 10
/** Milliseconds between collections of host facts without a new link. */
const factsEvery = 3_600_000

export interface HeartbeatOptions {
  readonly api: ServerApi
  readonly agentId: string
  readonly dataDir: string
  readonly clock: Clock
  readonly random: () => number
  readonly buffer: MetricsBuffer
  readonly measure: () => Promise<Metrics>
  /** Collects the facts of the host; may be slow. */
  readonly facts: () => Promise<SystemFacts>
  readonly intervals: Intervals
  /** Facts for the next heartbeat, which waits for them; those that are null are not sent. */
  readonly says: () => Promise<Partial<OwnFacts>>
  /** Newest mark of the server's store. */
  readonly mark: () => RunMark | null
  readonly onMark: (mark: RunMark) => void
  readonly log: Log
}

export interface HeartbeatEvents {
  /** The server answered, with the number of pending tasks; `wasAway` if first, or after a failure. */
  reached(wasAway: boolean, pendingTasks: number): void
  missed(reason: string): void
  configured(config: AgentConfig): void
  /** The token is invalid. Resolves to true if it was replaced. */
  revoked(): Promise<boolean>
}

/** HTTP traffic of a registered agent: heartbeats, metrics and configuration. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  #events: HeartbeatEvents = { reached() {}, missed() {}, configured() {}, revoked: async () => false }
  readonly #backoff: AgentBackoff
  readonly #health: ReturnType<typeof healthOf>
  readonly #bootedAt: number
  #intervals: Intervals
  #isAway = true
  #isStopped = false
  #beats = 0
  #isBeating = false
  #isWanted = false
  #configVersion: number | undefined
  /** Facts for the next heartbeat, and when to collect them again. */
  #facts: SystemFacts | null = null
  #factsDueAt = Number.NEGATIVE_INFINITY
  #cancelBeat: () => void = () => {}
  #cancelMetrics: () => void = () => {}
  #isMeasuring = false
  #isSending = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#backoff = agentBackoff(options.random)
    this.#health = healthOf(options.dataDir)
    this.#bootedAt = options.clock.monotonic()
    this.#intervals = bounded(options.intervals)
  }

  start(events: HeartbeatEvents): void {
    this.#events = events
    void this.#beat()
    this.#scheduleMetrics()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelBeat()
    this.#cancelMetrics()
  }

  /** Sends a heartbeat after a new link, because the server may have lost what it knew of this agent. */
  beatNow(): void {
    if (this.#isStopped || this.#beats === 0) return
    this.#factsDueAt = Number.NEGATIVE_INFINITY
    this.#isWanted = true
    // One at a time: each schedules the next, so two would run in parallel forever.
    if (this.#isBeating) return
    this.#cancelBeat()
    void this.#beat()
  }

  /** Sends an extra heartbeat for the time in its answer; false without an answer. */
  async hearServerTime(): Promise<boolean> {
    return this.#sendBeat().then(
      () => true,
      () => false,
    )
  }

  async #sendBeat(): Promise<AgentAck> {
    const { api, agentId, clock, says } = this.#options
    const mark = this.#options.mark()
    const { status, reason } = await this.#health()
    const own = sentOf(await says())
    const facts = this.#facts
    const ack = await api.heartbeat({
      agentId,
      timestamp: new Date(clock.now()).toISOString(),
      status,
      uptime: Math.floor((clock.monotonic() - this.#bootedAt) / 1000),
      ...own,
      ...(reason === null ? {} : { reason: sentence(reason) }),
      ...(mark === null ? {} : { mark }),
      ...(facts === null ? {} : { facts }),
    })
    if (this.#facts === facts) this.#facts = null
    if (isMark(ack.mark)) this.#options.onMark(ack.mark)
    return ack
  }

  async #beat(): Promise<void> {
    const { clock, log } = this.#options
    const began = clock.monotonic()
    this.#beats += 1
    this.#isBeating = true
    this.#isWanted = false
    let delay = this.#intervals.heartbeatInterval * 1000
    try {
      const ack = await this.#sendBeat()
      // An answer after the agent stopped must not open a link.
      if (this.#isStopped) return
      this.#answered(ack)
      if (began >= this.#factsDueAt) void this.#gatherFacts(began)
      await this.#follow(ack)
      delay = this.#intervals.heartbeatInterval * 1000 - (clock.monotonic() - began)
    } catch (error) {
      const reason = reasonOf(error)
      this.#events.missed(reason)
      delay = await this.#failed(error)
      log('WARN', 'no heartbeat', {
        error: reason,
        retryInMs: delay,
      })
    }
    this.#isBeating = false
    if (this.#isWanted) delay = 0
    if (!this.#isStopped) this.#cancelBeat = clock.after(Math.max(0, delay), () => void this.#beat())
  }

  /** Collects facts for the next heartbeat, because no heartbeat may wait for a disk. */
  async #gatherFacts(now: number): Promise<void> {
    this.#factsDueAt = now + factsEvery
    try {
      this.#facts = await this.#options.facts()
    } catch (error) {
      this.#options.log('DEBUG', 'cannot gather the facts of this host', { error: String(error) })
    }
  }

  #answered({ pendingTasks }: AgentAck): void {
    const wasAway = this.#isAway
    this.#isAway = false
    this.#backoff.reset()
    this.#events.reached(wasAway, pendingTasks)
    if (wasAway) void this.#send()
  }

  async #failed(error: unknown): Promise<number> {
    this.#isAway = true
    if (!(error instanceof RsmError)) return this.#backoff.next()
    if (error.code !== 'unauthenticated') return this.#backoff.next(error.retryAfter)
    return (await this.#events.revoked()) ? 0 : revokedDelay
  }

  async #follow({ configVersion }: AgentAck): Promise<void> {
    const isDue = this.#beats % pollEvery === 1
    if (configVersion === this.#configVersion && !isDue) return
    const config = await this.#options.api.config(this.#options.agentId)
    this.#configVersion = config.configVersion
    if (this.#isStopped) return
    const before = this.#intervals
    this.#intervals = bounded(config)
    if (this.#intervals.metricsInterval !== before.metricsInterval) this.#scheduleMetrics()
    this.#events.configured(config)
  }

  #scheduleMetrics(): void {
    this.#cancelMetrics()
    this.#cancelMetrics = this.#options.clock.after(this.#intervals.metricsInterval * 1000, () => {
      this.#scheduleMetrics()
      void this.#report()
    })
  }

  async #report(): Promise<void> {
    const { measure, buffer, log } = this.#options
    // Otherwise a hung disk would be queried again each time, and samples would arrive out of order.
    if (this.#isMeasuring) return
    this.#isMeasuring = true
    try {
      await buffer.push(await measure(), this.#intervals.metricsInterval)
    } catch (error) {
      log('WARN', 'could not store metrics', { error: String(error) })
    } finally {
      this.#isMeasuring = false
    }
    if (!this.#isAway) await this.#send()
  }

  async #send(): Promise<void> {
    const { api, agentId, buffer, log } = this.#options
    if (this.#isSending || this.#isStopped) return
    this.#isSending = true
    try {
      await buffer.drain(async (sample) => {
        if (this.#isStopped) throw new RsmError('unavailable', 'the agent is stopping')
        await api.metrics({ agentId, ...sample }).catch((error: unknown) => {
          // Skip a sample that the server will never accept, so that it does not block the rest.
          if (!(error instanceof RsmError) || (error.code !== 'invalid' && error.code !== 'too_large'))
            throw error
        })
      })
    } catch (error) {
      log('DEBUG', 'metrics stay in the buffer', { error: String(error), size: buffer.size })
    } finally {
      this.#isSending = false
    }
  }
}

function isMark(mark: AgentAck['mark']): mark is RunMark {
  return (
    typeof mark?.run === 'string' &&
    Number.isSafeInteger(mark.sequence) &&
    (mark.mac === undefined || typeof mark.mac === 'string')
  )
}

function reasonOf(error: unknown): string {
  if (error instanceof RsmError && error.code === 'unauthenticated')
    return 'the server answered 401: the token of this agent is not valid'
  return error instanceof Error ? error.message : String(error)
}

function sentOf(facts: Partial<OwnFacts>): Partial<HeartbeatRequest> {
  const known = Object.entries(facts).filter(([, value]) => value !== null)
  return Object.fromEntries(
    known.map(([name, value]) => [name, typeof value === 'string' ? sentence(value) : value]),
  )
}

/** Formats a reason for the server: one line, of limited length. */
function sentence(text: string): string {
  return shortened(text.replace(/\p{Cc}+/gu, ' '), longestReason - 1)
}
