import { mkdirSync } from 'node:fs'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Order } from '../files/order.ts'
import { launch } from '../processes/launch.ts'
import { existing, workDirFault } from '../processes/working-directory.ts'
import { accountOf, ready } from './beginning.ts'
import { type Execution, notRun } from './execution.ts'
import type { JournalWriter } from './journal-writer.ts'
import type { RunnerOptions } from './runner-options.ts'
import type { Supervision } from './supervision.ts'

interface StartingOptions extends RunnerOptions {
  readonly journalWriter: JournalWriter
  readonly supervision: Supervision
  /** That it starts is in the journal, on disk. */
  readonly durable: () => void
}

/**
 * Starts the present step of an execution, which the journal knows before. Answers its end where it must not begin, else null.
 * Throws where the system or the disk refuses.
 */
export async function startStep(
  execution: Execution,
  request: Order,
  options: StartingOptions,
): Promise<ScriptComplete | null> {
  const { journal, clock, journalWriter, supervision } = options
  const { taskId, place, step } = execution
  const at = new Date(clock.now()).toISOString()
  const fault = request.workDir === undefined ? null : await workDirFault(request.workDir)
  if (fault !== null) return notRun(taskId, at, { exitCode: 126, error: fault })
  const found = accountOf(request, options)
  const account = found instanceof Promise ? await found : found
  if (execution.isGated) mkdirSync(place, { recursive: true, mode: 0o711 })
  const { toRun, start, started } = ready(request, step, place, account, options)
  // Before it is durable, so that its cgroups go when it can't be.
  execution.started = started
  journal.append(started)
  await journal.sync()
  options.durable()
  const workDir = toRun.workDir ?? (await existing(account.home))
  if (execution.isCancelled) return notRun(taskId, at, { status: 'CANCELLED' })
  const { root, exited, begin, abandon } = await launch(toRun, start, workDir)
  try {
    journal.append({ e: 'spawned', taskId, ...root })
  } catch (error) {
    abandon()
    throw error
  }
  begin()
  // From here on it runs: nothing that fails may pass for a start that failed.
  // One that never waited kept no copy.
  if (journal.records.get(taskId)?.received && !execution.isGated) journalWriter.dropCopy(execution)
  supervision.begin(execution, started, root, exited, clock.monotonic())
  return null
}
