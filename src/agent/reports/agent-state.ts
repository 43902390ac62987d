import { hostname } from 'node:os'
import type { AgentState } from '../../core/hosts/agent-state.ts'
import type { ExecutionState } from '../../core/protocol/messages.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Clock, ServerTime } from '../clock.ts'
import { type Bounds, type ScriptSetting, settingHere } from '../processes/script-setting.ts'
import { agentVersion } from './facts.ts'
import type { StatusFile } from './status-file.ts'

type Options = Pick<AgentOptions, 'hostname' | 'url' | 'onDemand' | 'limits'>

interface Unregistered {
  readonly agentId: string
  readonly options: Options
  readonly script: ScriptSetting
  /** Milliseconds since 1970. */
  readonly since: number
  /** Reason why it is not registered yet. */
  readonly reason: string | null
}

export function unregisteredState({ agentId, options, script, since, reason }: Unregistered): AgentState {
  return {
    version: agentVersion(),
    agentId,
    hostId: null,
    hostname: options.hostname ?? hostname(),
    url: options.url,
    onDemand: options.onDemand,
    linked: false,
    since: new Date(since).toISOString(),
    reason,
    lastHeartbeatAt: null,
    heartbeatFault: null,
    clockOffsetSeconds: null,
    ...settingHere(script, null),
    limits: options.limits ?? {},
    executions: { running: 0, queued: 0, unacknowledged: 0 },
    terminals: null,
    terminalLack: null,
  }
}

interface Sources {
  readonly options: Options
  readonly membership: { readonly agentId: string; readonly registration: { readonly hostId: number } }
  readonly link: { readonly isOpen: boolean; readonly fault: string | null }
  readonly script: ScriptSetting
  readonly bounds: Bounds
  readonly runner: { readonly executions: ReadonlyMap<string, { readonly state: ExecutionState }> }
  readonly terminals: { readonly size: number; readonly isAvailable: boolean }
  /** Reason why it opens no terminals. */
  readonly lack: string | null
  readonly serverTime: ServerTime
  readonly clock: Clock
}

export class AgentStatus {
  readonly #file: StatusFile
  readonly #sources: Sources
  #since: string
  #lastHeartbeatAt: string | null = null
  #heartbeatFault: string | null = null

  constructor(file: StatusFile, sources: Sources) {
    this.#file = file
    this.#sources = sources
    this.#since = this.#now()
  }

  /** Resolves when the file has the first state. */
  publish(): Promise<void> {
    return this.#file.publish(() => this.#state())
  }

  /** A link came up or went down; written at once, because commands wait for it. */
  relinked(): void {
    this.#since = this.#now()
    void this.#file.write()
  }

  answered(): void {
    this.#lastHeartbeatAt = this.#now()
    this.#heartbeatFault = null
    this.#file.changed()
  }

  /** The server did not answer a heartbeat, or refused it. */
  unanswered(reason: string): void {
    this.#heartbeatFault = reason
    this.#file.changed()
  }

  counted(): void {
    this.#file.changed()
  }

  #now(): string {
    return new Date(this.#sources.clock.now()).toISOString()
  }

  #state(): AgentState {
    const { options, membership, link, script, bounds, runner, terminals, lack, serverTime } = this.#sources
    const { agentId, registration } = membership
    const clockOffset = serverTime.offset()
    const states = [...runner.executions.values()].map(({ state }) => state)
    const count = (state: ExecutionState) => states.filter((each) => each === state).length
    return {
      ...unregisteredState({ agentId, options, script, since: 0, reason: link.fault }),
      hostId: registration.hostId,
      linked: link.isOpen,
      since: this.#since,
      lastHeartbeatAt: this.#lastHeartbeatAt,
      heartbeatFault: this.#heartbeatFault,
      clockOffsetSeconds: clockOffset === null ? null : Math.round(clockOffset / 100) / 10,
      ...settingHere(script, bounds),
      limits: bounds.ceiling,
      executions: { running: count('RUNNING'), queued: count('QUEUED'), unacknowledged: count('EXITED') },
      terminals: terminals.isAvailable ? terminals.size : null,
      terminalLack: lack,
    }
  }
}
