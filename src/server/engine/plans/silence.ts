import type { End, Execution } from '../../seams/executions.ts'
import { notesOf } from '../notes.ts'
import type { EngineParts } from '../parts.ts'
import type { OwnedTask } from './owned-task.ts'

/** Milliseconds beyond its timeout that an execution may be silent before it is LOST (contract §4) … */
const silence = 10 * 60_000
/** … or that it may be when it has no timeout. */
const silenceWithoutTimeout = 24 * 3600_000

/** Looks after executions of owned tasks that say nothing. */
export function createSilence(parts: EngineParts, owned: ReadonlyMap<string, OwnedTask>) {
  const { executions, hints, member } = parts

  /** Whoever follows a task hears why a host is silent, before its result says so minutes later. */
  async function tellWhoIsAway(task: OwnedTask, all: readonly Execution[]): Promise<void> {
    const notes = await notesOf(parts, all)
    const ids = new Set([...notes.keys(), ...task.notes.keys()])
    for (const id of ids)
      if (notes.get(id) !== task.notes.get(id)) {
        const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
        hints.publish('task', { id: task.id, hostId, change: 'updated' })
      }
    task.notes = notes
  }

  function silentEnds({ timeout }: OwnedTask, all: readonly Execution[]): End[] {
    const limit = timeout === 0 ? silenceWithoutTimeout : timeout * 1000 + silence
    return all.flatMap(({ id, status }) => {
      const silent = executions.silentFor(id)
      if (status !== 'RUNNING' || silent <= limit) return []
      return [{ id, error: `no word of it for ${Math.round(silent / 1000)} s` }]
    })
  }

  return {
    async sweep(): Promise<void> {
      const byTask = new Map<string, Execution[]>()
      for (const execution of await executions.open()) {
        const all = byTask.get(execution.taskId) ?? []
        all.push(execution)
        byTask.set(execution.taskId, all)
      }
      for (const task of owned.values()) {
        const all = executions.held.has(task.id)
          ? (await executions.ofTask(task.id)).map(({ execution }) => execution)
          : (byTask.get(task.id) ?? [])
        if (all.length === 0 && task.notes.size === 0) continue
        await tellWhoIsAway(task, all)
        const ends = silentEnds(task, all)
        if (ends.length > 0) parts.ended(await executions.lose(member, ends))
      }
    },
  }
}
