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

/** What a runner works with; `directory` holds one folder per execution, `own` is the agent's user. */
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
  /** What no execution may exceed, whatever its task asks for. */
  readonly ceiling: Limits
  readonly maxExecutions: number
  /** Null where this agent takes no upgrades. */
  readonly upgrade: UpgradeWork | null
  readonly files: FileWork
  readonly verify: Verify
  /** Hears of what was refused for want of a good signature: which message, and why. */
  readonly distrusted: (what: string, reason: string) => void
  /** Asks the server for its time; false when it does not answer. */
  readonly hearServerTime: () => Promise<boolean>
  readonly log: Log
}

/** Who wants to know: of new output or a new state, and of ends that are in no journal. */
export interface RunnerEvents {
  changed(execution: Execution): void
  /** It is in the journal, on disk, whose last line by then had this number. */
  received(execution: Execution, sequence: number): void
  /** One with gates has got to another phase. */
  reached(execution: Execution): void
  answer(complete: ScriptComplete): void
  /** How many run, wait or are unacknowledged has changed. */
  counted(): void
}
