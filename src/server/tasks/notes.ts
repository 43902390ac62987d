import { exactSpan } from '../../core/checks/words.ts'
import { faultInBrackets, wasStopped } from '../../core/hosts/host-status.ts'
import { isFinal } from '../../core/tasks/task.ts'
import type { EngineParts } from './parts.ts'
import type { OpenExecution } from './scheduler/task-runner.ts'
import { longestWait } from './scheduler/unreachable.ts'

const sentAway =
  'its agent has no link now; the script may still be running there, and is LOST if nothing is heard of it'
/** `its agent is stopped; waiting up to 15 s (--queue)`. */
function waitsFor(fault: string | null | undefined, queueSeconds: number | null): string {
  const why = wasStopped(fault)
    ? 'its agent is stopped'
    : `its agent is not connected${faultInBrackets(fault)}`
  const seconds = longestWait(queueSeconds, fault)
  return `${why}; waiting ${seconds === 0 ? 'for it' : `up to ${exactSpan(seconds)} (--queue)`}`
}
const waitsForPerson =
  'held: this server was restored from a backup, and it may have run since; `rsm server confirm-restore` on its machine releases it'

/** Why hosts of a task that have not ended say nothing just now, by the id of the execution: its `error` until it ends. */
export async function notesOf(
  { executions, links, presence }: Pick<EngineParts, 'executions' | 'links' | 'presence'>,
  all: readonly OpenExecution[],
  queueSeconds: number | null,
): Promise<Map<string, string>> {
  const open = all.filter(({ status }) => !isFinal(status))
  const isHeld = ({ status, taskId }: OpenExecution) => status === 'PENDING' && executions.held.has(taskId)
  const due = open.filter((execution) => execution.dueAt !== null && !execution.overSsh && !isHeld(execution))
  const holders = await links.holders(due.map(({ hostId }) => hostId))
  const away = due.filter(({ hostId }) => !holders.has(hostId))
  const views = await presence.views(away.map(({ hostId }) => hostId))
  return new Map([
    ...open.filter(isHeld).map(({ id }) => [id, waitsForPerson] as const),
    ...away.map(
      ({ id, status }, at) =>
        [id, status === 'RUNNING' ? sentAway : waitsFor(views[at]?.says.linkFault, queueSeconds)] as const,
    ),
  ])
}
