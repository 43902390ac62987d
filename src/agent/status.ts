import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import type { LimitName } from '../core/limits.ts'
import type { Containment, SandboxMode } from '../core/protocol/http/hosts.ts'
import type { Limits } from '../core/protocol/http/tasks.ts'
import type { ExecutionState } from '../core/protocol/messages.ts'
import { temporaryName } from '../disk/durable.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { isAlive, startTimeOf } from './processes/machine.ts'
import type { Bounds, ScriptSetting } from './script/script-setting.ts'

/** No more than one write in so many milliseconds: what happens within it is written together. */
const writeEvery = 2_000
const fileName = 'status.json'

/** What an agent says of itself to who asks on its own host; times are ISO 8601. */
export interface AgentState {
  readonly agentId: string
  readonly hostId: number | null
  readonly hostname: string
  readonly url: string
  readonly linked: boolean
  /** When it was linked, or lost its link. */
  readonly since: string
  /** Why there is no link. */
  readonly reason: string | null
  readonly lastHeartbeatAt: string | null
  readonly runAs: string
  readonly runsAsRoot: boolean
  readonly sandbox: SandboxMode
  readonly containment: Containment
  /** What no execution may exceed. */
  readonly limits: Limits
  /** What can be limited here. */
  readonly enforces: readonly LimitName[]
  readonly executions: { readonly running: number; readonly queued: number; readonly unacknowledged: number }
  /** Open sessions; null where none can be opened. */
  readonly terminals: number | null
}

interface Kept extends AgentState {
  readonly pid: number
  readonly startTime: number
}

/** Where the state comes from. */
interface Sources {
  readonly agentId: string
  readonly options: { readonly hostname?: string | undefined; readonly url: string }
  readonly link: { readonly isOpen: boolean; readonly fault: string | null }
  readonly script: ScriptSetting
  readonly bounds: Bounds
  readonly runner: { readonly executions: ReadonlyMap<string, { readonly state: ExecutionState }> }
  readonly terminals: { readonly size: number; readonly isAvailable: boolean }
  readonly clock: Clock
  readonly log: Log
}

/** Keeps the state of a running agent in a file of its data directory, for `rsm agent status`. */
export class StatusFile {
  readonly #path: string
  readonly #sources: Sources
  readonly #hostId: () => number | null
  #since: string
  #lastHeartbeatAt: string | null = null
  #writtenAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | null = null

  /** `hostId` is asked for at every write, as a new registration may change it. */
  constructor(directory: string, sources: Sources, hostId: () => number | null) {
    this.#path = join(directory, fileName)
    this.#sources = sources
    this.#hostId = hostId
    this.#since = this.#now()
  }

  /** A link came up or went down. */
  relinked(): void {
    this.#since = this.#now()
    this.changed()
  }

  /** The server has answered a heartbeat. */
  heard(): void {
    this.#lastHeartbeatAt = this.#now()
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
    rmSync(this.#path, { force: true })
  }

  #now(): string {
    return new Date(this.#sources.clock.now()).toISOString()
  }

  #state(): AgentState {
    const { agentId, options, link, script, bounds, runner, terminals } = this.#sources
    const states = [...runner.executions.values()].map(({ state }) => state)
    const count = (state: ExecutionState) => states.filter((each) => each === state).length
    return {
      agentId,
      hostId: this.#hostId(),
      hostname: options.hostname ?? hostname(),
      url: options.url,
      linked: link.isOpen,
      since: this.#since,
      reason: link.fault,
      lastHeartbeatAt: this.#lastHeartbeatAt,
      runAs: script.account.name,
      runsAsRoot: script.account.uid === 0,
      sandbox: script.sandbox.mode,
      containment: bounds.containment.level,
      limits: bounds.ceiling,
      enforces: bounds.limiter.enforced,
      executions: { running: count('RUNNING'), queued: count('QUEUED'), unacknowledged: count('EXITED') },
      terminals: terminals.isAvailable ? terminals.size : null,
    }
  }

  #write(): void {
    const { clock, log } = this.#sources
    this.#writtenAt = clock.monotonic()
    const kept: Kept = { ...this.#state(), pid: process.pid, startTime: startTimeOf(process.pid) ?? 0 }
    const temporary = temporaryName(this.#path)
    try {
      writeFileSync(temporary, `${JSON.stringify(kept)}\n`, { mode: 0o600 })
      renameSync(temporary, this.#path)
    } catch (error) {
      rmSync(temporary, { force: true })
      log('DEBUG', 'the status could not be kept', { error: String(error) })
    }
  }
}

/**
 * The state of the agent that runs on this data directory. @throws RsmError `not_found` when none runs there,
 * `forbidden` when it belongs to another user.
 */
export function readAgentState(directory: string): AgentState & { readonly pid: number } {
  const none = (message: string) =>
    new RsmError('not_found', message, { hint: 'rsm agent run, or name its --data-dir' })
  let text: string
  try {
    text = readFileSync(join(directory, fileName), 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EACCES')
      throw new RsmError('forbidden', `${directory} belongs to another user`, {
        hint: 'ask as the user that the agent runs as',
        cause,
      })
    throw none(`no agent runs on ${directory}`)
  }
  const { startTime, ...state } = JSON.parse(text) as Kept
  if (!isAlive({ pid: state.pid, startTime }))
    throw none(`the agent on ${directory} is gone: pid ${state.pid} has ended without stopping it`)
  return state
}
