import { RsmError } from '../../core/errors.ts'
import type {
  AgentAck,
  AgentConfig,
  HeartbeatRequest,
  MetricsRequest,
  RegisterRequest,
  RegisterResult,
} from '../../core/protocol/http/agent.ts'
import type { Caller } from '../access/caller.ts'
import { newToken } from '../access/tokens.ts'
import { isoTime } from '../clock.ts'
import { sha256 } from '../digest.ts'
import type { Context } from './context.ts'
import { register } from './registration.ts'

export interface AgentSettings {
  heartbeatInterval: number
  metricsInterval: number
}

/** The agent's HTTP endpoints (seed "Agent HTTP endpoints", contract §6). */
export interface AgentService {
  register(caller: Caller, input: RegisterRequest, address: string): Promise<RegisterResult>
  heartbeat(caller: Caller, input: HeartbeatRequest): AgentAck
  metrics(caller: Caller, input: MetricsRequest): AgentAck
  config(caller: Caller, agentId: string): AgentConfig
}

export function createAgents(context: Context, settings: AgentSettings): AgentService {
  const { presence, history, engine, clock, keys, bus } = context
  const { heartbeatInterval, metricsInterval } = settings
  const config = { heartbeatInterval, metricsInterval, logLevel: 'INFO' as const }
  /** Differs whenever an agent should ask for its configuration anew. */
  const configVersion = Number.parseInt(sha256(JSON.stringify(config)).slice(0, 8), 16)

  /** An agent speaks for itself only: another's agentId is 403 (contract §2). */
  function hostOf(caller: Caller, agentId: string): number {
    if (caller.type !== 'agent' || caller.agentId !== agentId)
      throw new RsmError('forbidden', `This token is not the one of agent ${agentId}`)
    return caller.hostId
  }

  /** Date's own text of a time takes longer than all else of a heartbeat: once a second is enough for all but the end. */
  const second = { at: Number.NaN, text: '' }
  function serverTime(): string {
    const now = Math.floor(clock.now())
    const milliseconds = now % 1000
    const at = now - milliseconds
    if (at !== second.at) Object.assign(second, { at, text: isoTime(at).slice(0, -'000Z'.length) })
    return `${second.text}${String(milliseconds).padStart(3, '0')}Z`
  }

  const ack = (hostId: number): AgentAck => ({
    serverTime: serverTime(),
    configVersion,
    pendingTasks: engine.pendingFor(hostId).length,
  })

  return {
    async register(caller, input, address) {
      const { token, tokenHash } = newToken('agent')
      const registered = await register(context, caller, input, address, tokenHash)
      const { hostId, created, clusterId, replacedAgentId } = registered
      if (replacedAgentId !== null) bus.publish('agentRevoked', replacedAgentId, { agentId: replacedAgentId })
      bus.publish('host', hostId, { hostId, change: created ? 'created' : 'updated' })
      if (clusterId !== null) bus.publish('cluster', clusterId, { clusterId, change: 'updated' })
      presence.registered(hostId)
      return {
        hostId,
        token,
        heartbeatInterval,
        metricsInterval,
        serverKey: keys.serverKey,
        keyId: keys.keyId,
        serverTime: serverTime(),
      }
    },
    heartbeat(caller, beat) {
      const hostId = hostOf(caller, beat.agentId)
      presence.heartbeat(hostId, beat)
      return ack(hostId)
    },
    metrics(caller, { agentId, ...metrics }) {
      const hostId = hostOf(caller, agentId)
      presence.metrics(hostId, metrics)
      history.append(hostId, metrics)
      return ack(hostId)
    },
    config(caller, agentId) {
      const hostId = hostOf(caller, agentId)
      const pendingTasks = engine
        .pendingFor(hostId)
        .map((taskId) => ({ taskId, type: 'EXECUTE_SCRIPT' as const }))
      return { ...config, configVersion, pendingTasks }
    },
  }
}
