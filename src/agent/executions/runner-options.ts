import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Limits } from '../../core/tasks/limits.ts'
import type { Clock } from '../clock.ts'
import type { FileWork } from '../files/order.ts'
import type { Verify } from '../link/verify.ts'
import type { Log } from '../log.ts'
import type { Account } from '../processes/account.ts'
import type { Containment } from '../processes/containment.ts'
import type { Limiter } from '../processes/limits.ts'
import type { Machine } from '../processes/machine.ts'
import type { Sandbox } from '../processes/sandbox.ts'
import type { UpgradeWork } from '../upgrade/order.ts'
import type { Execution } from './execution.ts'
import type { Journal } from './journal.ts'

/** Dependencies of a runner; `directory` holds one folder per execution, `own` is the agent's user. */
export interface RunnerOptions {
  readonly directory: string
  readonly journal: Journal
  readonly clock: Clock
  readonly machine: Machine
  readonly containment: Containment
  readonly own: Account
  readonly runAs: string
  readonly allowRunAs: readonly string[]
  readonly sandbox: Sandbox
  readonly limiter: Limiter
  /** Limits that no execution may exceed, whatever its task requests. */
  readonly ceiling: Limits
  readonly maxExecutions: number
  /** Null if this agent does not upgrade itself. */
  readonly upgrade: UpgradeWork | null
  readonly files: FileWork
  readonly verify: Verify
  /** Called for each message refused for its signature: which one, and why. */
  readonly distrusted: (what: string, reason: string) => void
  /** Asks the server for its time; false if it does not answer. */
  readonly hearServerTime: () => Promise<boolean>
  readonly log: Log
}

/** Listeners for new output, new states, and results that are not in the journal. */
export interface RunnerEvents {
  changed(execution: Execution): void
  /** Received and durable; `sequence` is the number of the journal's last line. */
  received(execution: Execution, sequence: number): void
  reached(execution: Execution): void
  answer(complete: ScriptComplete): void
  /** The number of running, queued or unacknowledged executions changed. */
  counted(): void
}
