import type { Limits } from '../core/protocol/http/tasks.ts'
import type { ScriptComplete } from '../core/protocol/messages.ts'
import type { Account } from './account.ts'
import type { Clock } from './clock.ts'
import type { Containment } from './containment.ts'
import type { Execution } from './execution.ts'
import type { Journal } from './journal.ts'
import type { Limiter } from './limits.ts'
import type { Log } from './log.ts'
import type { Machine } from './machine.ts'
import type { Sandbox } from './sandbox.ts'
import type { Verify } from './verify.ts'

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
  answer(complete: ScriptComplete): void
}
