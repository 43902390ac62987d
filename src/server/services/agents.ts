import { RsmError } from '../../core/errors.ts'
import type {
  AgentAck,
  AgentConfig,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
  RegisterResult,
  SystemFacts,
} from '../../core/protocol/http/agent.ts'
import { Allowance, LineBudget } from '../../core/rates.ts'
import { isoTime } from '../../disk/clock.ts'
import { sha256 } from '../../disk/digest.ts'
import { newToken } from '../access/credentials.ts'
import { beatOf, sanitizeFacts, sanitizeMetrics } from '../hosts/reported.ts'
import type { AgentCaller, Caller } from '../storage/ports/caller.ts'
import { type Context, publishTokenEnded } from './context.ts'
import { register, takeFacts } from './registration.ts'

export interface AgentSettings {
  heartbeatInterval: number
  metricsInterval: number
}

/**
 * Rate limit of one agent's registrations, in milliseconds: each costs a write and an audit entry. Our agents register
 * once, and again after a lost reply, at least 5 s later.
 */
const registrations = { most: 10, life: 30_000, spaced: true }
/** Samples in an agent's buffer: one hour (contract §6), at any interval. */
const bufferedSamples = 780
/** Tolerance for reports faster than the interval, because of clock drift. */
const fasterThanAsked = 1.25

/** Burst of changes to a host's facts, and milliseconds per further change; each is a write. */
const [mostChanges, changePeriod] = [10, 600_000]

/** The agent's HTTP endpoints (base-api "Calls of agents", contract §6). */
export interface AgentService {
  register(caller: Caller, input: RegisterRequest, address: string): Promise<RegisterResult>
  heartbeat(caller: Caller, input: HeartbeatRequest): Promise<AgentAck>
  metrics(caller: Caller, input: MetricsRequest): Promise<AgentAck>
  config(caller: Caller, agentId: string): Promise<AgentConfig>
}

export function createAgents(context: Context, settings: AgentSettings): AgentService {
  const { presence, history, engine, clock, keys, hints, facts, shortLived, log } = context
  const { heartbeatInterval, metricsInterval } = settings
  const config = { heartbeatInterval, metricsInterval, logLevel: 'INFO' as const }
  /** Changes whenever agents should fetch their configuration again. */
  const configVersion = Number.parseInt(sha256(JSON.stringify(config)).slice(0, 8), 16)

  const sampling = new Allowance(
    Math.max(bufferedSamples, Math.ceil(3600 / metricsInterval)),
    (metricsInterval * 1000) / fasterThanAsked,
  )
  const excess = new LineBudget()
  const changing = new Allowance(mostChanges, changePeriod)

  /** Key for counting registrations; null for administrators, who may repair a fleet at any rate. */
  const registrant = (caller: Caller, agentId: string) =>
    caller.type === 'user' ? null : caller.type === 'agent' ? caller.agentId : `${caller.id} ${agentId}`

  function mayRegister(wait: number): void {
    if (wait === 0) return
    const retryAfter = Math.ceil(wait / 1000)
    throw new RsmError('too_many', `This agent registers too often; try again in ${retryAfter} s`, {
      retryAfter,
    })
  }

  /** Drops metrics of a host that reports too often, because they would fill the disk. */
  function isKept(hostId: number): boolean {
    if (sampling.take(hostId, clock.monotonic()) === 0) return true
    const leftOut = excess.take(String(hostId), clock.monotonic())
    if (leftOut !== null)
      log.warn({ hostId, leftOut }, 'a host reports metrics too often; dropping the excess')
    return false
  }

  /** Agents may only act for themselves: another agentId is 403 (contract §2). */
  function agentOf(caller: Caller, agentId: string): AgentCaller {
    if (caller.type !== 'agent' || caller.agentId !== agentId)
      throw new RsmError('forbidden', `This token does not belong to agent ${agentId}`)
    return caller
  }

  /** Ignores a store outage, so that the heartbeat succeeds; the agent reports the facts again. */
  async function receiveFacts(caller: AgentCaller, reported: SystemFacts): Promise<void> {
    const { hostId } = caller
    const mayChange = () => changing.take(hostId, clock.monotonic()) === 0
    try {
      if (await takeFacts(context, caller, sanitizeFacts(reported), mayChange))
        hints.publish('host', { id: hostId, change: 'updated' })
    } catch (error) {
      if (!(error instanceof RsmError && error.code === 'unavailable')) throw error
    }
  }

  /** 0 during a store outage: a heartbeat must not fail and make the host look silent (contract §12). */
  async function pendingTasks(hostId: number): Promise<number> {
    try {
      return await engine.waitingOn(hostId)
    } catch (error) {
      if (error instanceof RsmError && error.code === 'unavailable') return 0
      throw error
    }
  }

  async function ack(hostId: number, agentId: string): Promise<AgentAck> {
    const mark = engine.markFor(agentId)
    return {
      serverTime: isoTime(clock.now()),
      configVersion,
      pendingTasks: await pendingTasks(hostId),
      ...(mark && { mark }),
    }
  }

  return {
    async register(caller, input, address) {
      const name = registrant(caller, input.agentId)
      // For enrollment tokens only successes count, because each conflict must be reported.
      if (name !== null)
        mayRegister(
          await shortLived[caller.type === 'agent' ? 'count' : 'wait']('registration', name, registrations),
        )
      const { token, tokenHash } = newToken('agent')
      const registered = await register(context, caller, sanitizeFacts(input), address, tokenHash)
      if (name !== null && caller.type === 'enrollment')
        await shortLived.count('registration', name, registrations)
      const { hostId, created, clusterId, replacedAgentId, yielded } = registered
      if (replacedAgentId !== null) publishTokenEnded(context, replacedAgentId)
      if (yielded !== null) {
        hints.publish('host', { id: yielded.hostId, change: 'updated' })
        facts.publish('hostnameYielded', yielded)
      }
      hints.publish('host', { id: hostId, change: created ? 'created' : 'updated' })
      if (clusterId !== null) hints.publish('cluster', { id: clusterId, change: 'updated' })
      presence.registered(hostId)
      return {
        hostId,
        token,
        heartbeatInterval,
        metricsInterval,
        serverKey: keys.serverKey,
        keyId: keys.keyId,
        serverTime: isoTime(clock.now()),
      }
    },
    async heartbeat(caller, beat) {
      const agent = agentOf(caller, beat.agentId)
      const { hostId } = agent
      if (beat.mark) engine.judgeMark({ hostId, agentId: beat.agentId }, beat.mark)
      presence.heartbeat(hostId, beatOf(beat))
      if (beat.facts) await receiveFacts(agent, beat.facts)
      return ack(hostId, beat.agentId)
    },
    async metrics(caller, { agentId, ...report }) {
      const { hostId } = agentOf(caller, agentId)
      const metrics = sanitizeMetrics(report)
      presence.metrics(hostId, metrics)
      if (isKept(hostId)) history.append(hostId, metrics)
      return ack(hostId, agentId)
    },
    async config(caller, agentId) {
      const { hostId } = agentOf(caller, agentId)
      const waiting = await engine.pendingFor(hostId)
      const pendingTasks = waiting.map((taskId) => ({ taskId, type: 'EXECUTE_SCRIPT' as const }))
      return { ...config, configVersion, pendingTasks }
    },
  }
}
