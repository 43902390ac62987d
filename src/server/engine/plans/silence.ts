import type { End } from '../../seams/executions.ts'
import { notesOf } from '../notes.ts'
import type { EngineParts } from '../parts.ts'
import { isTooSilent, silentEnd } from '../silence.ts'
import type { OpenExecution, OwnedTask } from './owned-task.ts'

/** Looks after executions of owned tasks whose hosts have no link to any server. */
export function createSilence(parts: EngineParts, owned: ReadonlyMap<string, OwnedTask>) {
  const { executions, hints, member, clock } = parts

  /** Whoever follows a task hears why a host is silent, before its result says so minutes later. */
  async function tellWhoIsAway(task: OwnedTask, all: readonly OpenExecution[]): Promise<void> {
    const notes = await notesOf(parts, all)
    const ids = new Set([...notes.keys(), ...task.notes.keys()])
    for (const id of ids)
      if (notes.get(id) !== task.notes.get(id)) {
        const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
        hints.publish('task', { id: task.id, hostId, change: 'updated' })
      }
    task.notes = notes
  }

  /** Of those that are RUNNING; a note says of each whose host is away. */
  function silentEnds({ longest, notes, linkedAt }: OwnedTask): End[] {
    const now = clock.monotonic()
    const ends: End[] = []
    for (const [id, at] of linkedAt)
      if (!notes.has(id)) linkedAt.set(id, now)
      else if (isTooSilent(longest, now - at)) ends.push(silentEnd(id, now - at))
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
        const ends = silentEnds(task)
        if (ends.length > 0) parts.ended(await executions.lose(member, ends))
      }
    },
  }
}
