import type { End } from '../../storage/ports/executions.ts'
import { notesOf } from '../notes.ts'
import type { EngineParts } from '../parts.ts'
import type { OpenExecution, TaskRunner } from './task-runner.ts'

/** Looks after executions of owned tasks whose hosts are away, or linked and do not report an end. */
export function createSilence(parts: EngineParts, owned: ReadonlyMap<string, TaskRunner>) {
  const { executions, store, hints, member, clock } = parts

  /** Whoever follows a task hears why a host is silent, before its result says so minutes later. */
  async function tellWhoIsAway(task: TaskRunner, all: readonly OpenExecution[]): Promise<void> {
    const notes = await notesOf(parts, all, task.queueSeconds)
    const ids = new Set([...notes.keys(), ...task.notes.keys()])
    for (const id of ids)
      if (notes.get(id) !== task.notes.get(id)) {
        const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
        hints.publish('task', { id: task.id, hostId, change: 'updated' })
      }
    task.notes = notes
  }

  /** Executions that are LOST: their hosts are away for too long, or linked without an end that is due. */
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
        await tellWhoIsAway(task, all)
        // Agents cannot report an end while nothing can be written.
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
