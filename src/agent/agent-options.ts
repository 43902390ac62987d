import type { Clock } from './clock.ts'
import type { Log, LogLevel } from './log.ts'
import type { Machine } from './processes/machine.ts'
import type { ScriptOptions } from './processes/script-setting.ts'

export interface AgentOptions extends ScriptOptions {
  /** Base URL of the server, http or https. */
  url: string
  dataDir: string
  /** Required once, to register. A function is called only then, because its file may be gone later. */
  enrollToken?: string | (() => string) | undefined
  /** Generated and saved by default. */
  agentId?: string | undefined
  hostname?: string | undefined
  /** Executions at once; more are queued. */
  maxExecutions: number
  /** Links only while there is work. */
  onDemand: boolean
  /** `stop` waits for running executions. */
  drain: boolean
  allowUnsigned: boolean
  noTerminal?: boolean | undefined
  caFile?: string | undefined
  tlsFingerprint?: string | undefined
  /** Default: the server's, and INFO until it is known. */
  logLevel?: LogLevel | undefined
  log?: Log | undefined
  clock?: Clock | undefined
  random?: (() => number) | undefined
  machine?: Machine | undefined
  /** Disk size of this host in GB; by default a child process measures it. */
  diskSize?: (() => Promise<number>) | undefined
  /** Milliseconds without work before an on-demand link closes; 30 s. */
  idleLink?: number | undefined
  /** The rsm file that this process runs from, if it can be upgraded: its supervisor then restarts it. */
  installed?: string | undefined
  environment?: Record<string, string | undefined> | undefined
  /** Aborts a registration that waits for its server. */
  signal?: AbortSignal | undefined
}

export interface RunningAgent {
  readonly agentId: string
  readonly hostId: number | null
  linked(): boolean
  readonly closed: Promise<void>
  /** Stops; running scripts continue for the next agent, or with `drain` are awaited. */
  stop(): Promise<void>
  /** Stops at once for another version; does nothing and resolves to false while terminals are open. */
  giveWay(): Promise<boolean>
}
