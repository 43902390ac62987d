import { hostname } from 'node:os'
import type { AgentState } from '../../core/agent-state.ts'
import type { ExecutionState } from '../../core/protocol/messages.ts'
import type { Clock, ServerTime } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Bounds, ScriptSetting } from '../script/script-setting.ts'
import { removeState, writeState } from './agent-state.ts'

/** No more than one write in so many milliseconds: what happens within it is written together. */
const writeEvery = 2_000

/** Where the state comes from. */
interface Sources {
  readonly agentId: string
  readonly options: {
    readonly hostname?: string | undefined
    readonly url: string
    readonly onDemand: boolean
  }
  readonly link: { readonly isOpen: boolean; readonly fault: string | null }
  readonly script: ScriptSetting
  readonly bounds: Bounds
  readonly runner: { readonly executions: ReadonlyMap<string, { readonly state: ExecutionState }> }
  readonly terminals: { readonly size: number; readonly isAvailable: boolean }
  /** Why no terminals are opened. */
  readonly lack: string | null
  readonly serverTime: ServerTime
  readonly clock: Clock
  readonly log: Log
}

/** Keeps the state of a running agent in a file of its data directory, for `rsm agent status`. */
export class StatusFile {
  readonly #directory: string
  readonly #sources: Sources
  readonly #hostId: () => number | null
  #since: string
  #lastHeartbeatAt: string | null = null
  #heartbeatFault: string | null = null
  #writtenAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | null = null

  /** `hostId` is asked for at every write, as a new registration may change it. */
  constructor(directory: string, sources: Sources, hostId: () => number | null) {
    this.#directory = directory
    this.#sources = sources
    this.#hostId = hostId
    this.#since = this.#now()
  }

  /** A link came up or went down: whoever waits for that sees it at once. */
  relinked(): void {
    this.#since = this.#now()
    this.#cancel?.()
    this.#cancel = null
    this.#write()
  }

  /** The server has answered a heartbeat. */
  heard(): void {
    this.#lastHeartbeatAt = this.#now()
    this.#heartbeatFault = null
    this.changed()
  }

  /** The server has not answered a heartbeat, or has refused it. */
  unheard(reason: string): void {
    this.#heartbeatFault = reason
    this.changed()
  }

  /** Something else has changed: written at once, or soon. */
  changed(): void {
    if (this.#cancel) return
    const { clock } = this.#sources
    const wait = this.#writtenAt + writeEvery - clock.monotonic()
    if (wait <= 0) return this.#write()
    this.#cancel = clock.after(wait, () => {
      this.#cancel = null
      this.#write()
    })
  }

  /** The agent has stopped: it has no state any more. */
  remove(): void {
    this.#cancel?.()
    removeState(this.#directory)
  }

  #now(): string {
    return new Date(this.#sources.clock.now()).toISOString()
  }

  #state(): AgentState {
    const { agentId, options, link, script, bounds, runner, terminals, lack, serverTime } = this.#sources
    const clockOffset = serverTime.offset()
    const states = [...runner.executions.values()].map(({ state }) => state)
    const count = (state: ExecutionState) => states.filter((each) => each === state).length
    return {
      agentId,
      hostId: this.#hostId(),
      hostname: options.hostname ?? hostname(),
      url: options.url,
      onDemand: options.onDemand,
      linked: link.isOpen,
      since: this.#since,
      reason: link.fault,
      lastHeartbeatAt: this.#lastHeartbeatAt,
      heartbeatFault: this.#heartbeatFault,
      clockOffsetSeconds: clockOffset === null ? null : Math.round(clockOffset / 100) / 10,
      runAs: script.account.name,
      runsAsRoot: script.account.uid === 0,
      sandbox: script.sandbox.mode,
      containment: bounds.containment.level,
      limits: bounds.ceiling,
      enforces: bounds.limiter.enforced,
      executions: { running: count('RUNNING'), queued: count('QUEUED'), unacknowledged: count('EXITED') },
      terminals: terminals.isAvailable ? terminals.size : null,
      terminalLack: lack,
    }
  }

  #write(): void {
    const { clock, log } = this.#sources
    this.#writtenAt = clock.monotonic()
    writeState(this.#directory, this.#state(), log)
  }
}
