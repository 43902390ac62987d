import { faultPoint } from '#fault-point'
import { isoTime } from '../clock.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import { type EngineState, ended } from './state.ts'
import type { TaskRun } from './task-run.ts'

/** An execution whose end can't be known, with what is here of its output: how much there was nobody can tell. */
export function asLost(run: TaskRun, current: ExecutionRecord, at: string, error: string): ExecutionRecord {
  const stored = run.stored(current.position)
  const bytes = stored.stdoutBytes + stored.stderrBytes
  const told = bytes === 0 ? error : `${error}; ${bytes} bytes of its output are here`
  return { ...ended(current, 'LOST', at, told), ...stored, outputComplete: false }
}

/** Ends as LOST what was sent and whose end can't be known. */
export async function lose(
  state: EngineState,
  run: TaskRun,
  execution: ExecutionRecord,
  error: string,
): Promise<void> {
  const at = isoTime(state.clock.now())
  faultPoint('server.lost.before')
  await state.change(run, [execution.position], (current) =>
    current.status === 'RUNNING' ? asLost(run, current, at, error) : null,
  )
  faultPoint('server.lost.after')
}

/** Whether its agent has ever said that it has it, or sent output of it. */
export function isReceived(state: EngineState, run: TaskRun, execution: ExecutionRecord): boolean {
  const live = run.live(execution.position, state.clock.monotonic())
  return execution.named || live.received || live.storedSequence >= 0
}
