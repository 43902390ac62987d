import { readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentState } from '../../core/hosts/agent-state.ts'
import { Mutex } from '../../core/mutex.ts'
import { temporaryName } from '../../disk/durable.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { isAlive, startTimeOf } from '../processes/machine.ts'

export const stateFileName = 'status.json'

/** Milliseconds between two writes, which batch changes. */
const writeEvery = 2_000

/** The file's contents; the process identifies a state left by a killed agent. */
export interface KeptState extends AgentState {
  readonly pid: number
  readonly startTime: number
}

/** Keeps the state of an agent in a file for `rsm agent status`. Written only on changes. */
export class StatusFile {
  readonly #path: string
  readonly #clock: Clock
  readonly #log: Log
  readonly #process = { pid: process.pid, startTime: startTimeOf(process.pid) ?? 0 }
  #state: (() => AgentState) | null = null
  #text = ''
  #writtenAt = Number.NEGATIVE_INFINITY
  readonly #writes = new Mutex()
  #cancel: (() => void) | null = null

  constructor(directory: string, clock: Clock, log: Log) {
    this.#path = join(directory, stateFileName)
    this.#clock = clock
    this.#log = log
  }

  /** Sets the source of the state; resolves once the file has it. */
  publish(state: () => AgentState): Promise<void> {
    this.#state = state
    return this.write()
  }

  changed(): void {
    this.#cancel ??= this.#clock.after(
      Math.max(0, this.#writtenAt + writeEvery - this.#clock.monotonic()),
      () => void this.write(),
    )
  }

  /** Writes the state at once, if it changed. Never rejects: the agent runs on without the file. */
  write(): Promise<void> {
    this.#cancel?.()
    this.#cancel = null
    this.#writtenAt = this.#clock.monotonic()
    return this.#writes.run(() => this.#replace())
  }

  async remove(): Promise<void> {
    this.#state = null
    this.#cancel?.()
    await this.#writes.run(() => rm(this.#path, { force: true }))
  }

  async #replace(): Promise<void> {
    if (this.#state === null) return
    const kept: KeptState = { ...this.#state(), ...this.#process }
    const text = `${JSON.stringify(kept)}\n`
    if (text === this.#text) return
    const temporary = temporaryName(this.#path)
    try {
      await writeFile(temporary, text, { mode: 0o600 })
      await rename(temporary, this.#path)
      this.#text = text
    } catch (error) {
      await rm(temporary, { force: true })
      this.#log('DEBUG', 'could not write the status', { error: String(error) })
    }
  }
}

/** State of the agent running on this data directory; null if none runs. */
export function runningState(dataDir: string): KeptState | null {
  try {
    const state = JSON.parse(readFileSync(join(dataDir, stateFileName), 'utf8')) as KeptState
    return isAlive(state) ? state : null
  } catch {
    return null
  }
}

/** Whether its server can reach it: linked, or heartbeats succeed if it links on demand. */
export function isOnline({ linked, onDemand, lastHeartbeatAt, heartbeatFault }: KeptState): boolean {
  return linked || (onDemand && lastHeartbeatAt !== null && heartbeatFault === null)
}
