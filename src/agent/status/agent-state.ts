import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { AgentState } from '../../core/agent-state.ts'
import { temporaryName } from '../../disk/durable.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Log } from '../log.ts'
import { startTimeOf } from '../processes/machine.ts'
import type { ScriptSetting } from '../script/script-setting.ts'

export const stateFileName = 'status.json'

/** In the file: the process whose state it is, so that one that was killed is found out. */
export interface KeptState extends AgentState {
  readonly pid: number
  readonly startTime: number
}

interface Unregistered {
  readonly agentId: string
  readonly options: Pick<AgentOptions, 'hostname' | 'url' | 'onDemand' | 'limits'>
  readonly script: ScriptSetting
  /** Milliseconds since 1970. */
  readonly since: number
}

/** The state of an agent that asks its server to register it. */
export function unregisteredState({ agentId, options, script, since }: Unregistered): AgentState {
  return {
    agentId,
    hostId: null,
    hostname: options.hostname ?? hostname(),
    url: options.url,
    onDemand: options.onDemand,
    linked: false,
    since: new Date(since).toISOString(),
    reason: null,
    lastHeartbeatAt: null,
    heartbeatFault: null,
    clockOffsetSeconds: null,
    runAs: script.account.name,
    runsAsRoot: script.account.uid === 0,
    sandbox: script.sandbox.mode,
    containment: null,
    limits: options.limits ?? {},
    enforces: null,
    executions: { running: 0, queued: 0, unacknowledged: 0 },
    terminals: null,
    terminalLack: null,
  }
}

/** A state that can't be written is logged, and no reason to stop. */
export function writeState(directory: string, state: AgentState, log: Log): void {
  const kept: KeptState = { ...state, pid: process.pid, startTime: startTimeOf(process.pid) ?? 0 }
  const path = join(directory, stateFileName)
  const temporary = temporaryName(path)
  try {
    writeFileSync(temporary, `${JSON.stringify(kept)}\n`, { mode: 0o600 })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    log('DEBUG', 'the status could not be kept', { error: String(error) })
  }
}

export function removeState(directory: string): void {
  rmSync(join(directory, stateFileName), { force: true })
}
