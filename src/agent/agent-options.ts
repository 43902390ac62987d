import type { Clock } from './clock.ts'
import type { Log, LogLevel } from './log.ts'
import type { Machine } from './processes/machine.ts'
import type { ScriptOptions } from './processes/script-setting.ts'

export interface AgentOptions extends ScriptOptions {
  /** Base URL of the server, http or https. */
  url: string
  dataDir: string
  /** Needed once, for the registration. A function is asked when the agent has to register, and only then: the file it reads may be gone by now. */
  enrollToken?: string | (() => string) | undefined
  /** Generated and kept where it is not given. */
  agentId?: string | undefined
  hostname?: string | undefined
  /** More wait their turn. */
  maxExecutions: number
  /** Links only while there is work. */
  onDemand: boolean
  /** `stop` waits for what runs. */
  drain: boolean
  allowUnsigned: boolean
  /** Opens no terminals. */
  noTerminal?: boolean | undefined
  caFile?: string | undefined
  tlsFingerprint?: string | undefined
  /** Left out: the server's, and INFO until it is known. */
  logLevel?: LogLevel | undefined
  log?: Log | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  machine?: Machine | undefined
  /** GB that the disks of this host hold; left out, a process of its own finds out. */
  diskSize?: (() => Promise<number>) | undefined
  /** Milliseconds without work after which a link on demand is closed; 30 s. */
  idleLink?: number | undefined
  /** The file of rsm that this process was started from, where it can take upgrades: who runs it starts it anew. */
  installed?: string | undefined
  environment?: Record<string, string | undefined> | undefined
  /** Stops a registration that waits for its server. */
  signal?: AbortSignal | undefined
}

export interface RunningAgent {
  readonly agentId: string
  readonly hostId: number | null
  linked(): boolean
  /** Settles when the agent has stopped. */
  readonly closed: Promise<void>
  /** Stops; scripts that run go on for the next agent, or are waited for with `drain`. */
  stop(): Promise<void>
  /** Stops without waiting for anything, so that another version may run; false, and nothing done, while terminals are open. */
  giveWay(): Promise<boolean>
}
