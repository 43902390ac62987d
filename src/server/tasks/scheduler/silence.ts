import { exactSpan } from '../../../core/checks/words.ts'
import { faultInBrackets, wasStopped } from '../../../core/hosts/host-status.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import type { End } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'
import type { OpenExecution, TaskRunner } from './task-runner.ts'
import { longestWait } from './unreachable.ts'

const sentAway =
  'its agent is not connected; the script may still be running, and is LOST if the agent does not return'
const waitsForPerson =
  'held: this server was restored from a backup, and it may have run since; `rsm server confirm-restore` on its machine releases it'

/** Watches executions of owned tasks whose hosts are disconnected, or linked without reporting an end. */
export function createSilence(parts: EngineParts, owned: ReadonlyMap<string, TaskRunner>) {
  const { executions, store, hints, member, clock } = parts

  /** Tells followers why a host is silent, minutes before its result does. */
  async function publishAway(task: TaskRunner, all: readonly OpenExecution[]): Promise<void> {
    const notes = await notesOf(parts, all, task.queueSeconds)
    const ids = new Set([...notes.keys(), ...task.notes.keys()])
    for (const id of ids)
      if (notes.get(id) !== task.notes.get(id)) {
        const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
        hints.publish('task', { id: task.id, hostId, change: 'updated' })
      }
    task.notes = notes
  }

  /** Executions to end as LOST: the host is disconnected for too long, or an end is overdue. */
  async function lostEnds({ id: taskId, notes, watches }: TaskRunner): Promise<End[]> {
    const now = clock.monotonic()
    const ends: End[] = []
    const add = (id: string, error: string | null | undefined) => {
      if (typeof error === 'string') ends.push({ id, error })
    }
    const due: number[] = []
    for (const [id, watch] of watches)
      if (notes.has(id)) add(id, watch.away(now))
      else if (watch.linked(now)) due.push(Number(id.slice(id.lastIndexOf('/') + 1)))
    for (const { execution, output } of due.length === 0 ? [] : await executions.ofHosts(taskId, due))
      add(execution.id, watches.get(execution.id)?.hear(now, output.storedSequence))
    return ends
  }

  return {
    async sweep(): Promise<void> {
      for (const task of owned.values()) {
        const all = executions.held.has(task.id)
          ? (await executions.ofTask(task.id)).map(({ execution }) => execution)
          : [...task.open.values()]
        if (all.length === 0 && task.notes.size === 0) continue
        await publishAway(task, all)
        // Ends cannot be stored while the store is read-only.
        if (store.readOnlyReason !== null) {
          for (const watch of task.watches.values()) watch.pause(clock.monotonic())
          continue
        }
        const ends = await lostEnds(task)
        if (ends.length > 0) parts.ended(await executions.lose(member, ends))
      }
    },
  }
}

/** Why hosts of a task are silent, by execution id: the `error` of its result until it ends. */
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

/** E.g. `its agent is stopped; waiting up to 15 s (--queue)`. */
function waitsFor(fault: string | null | undefined, queueSeconds: number | null): string {
  const why = wasStopped(fault)
    ? 'its agent is stopped'
    : `its agent is not connected${faultInBrackets(fault)}`
  const seconds = longestWait(queueSeconds, fault)
  return `${why}; waiting ${seconds === 0 ? 'for it' : `up to ${exactSpan(seconds)} (--queue)`}`
}
