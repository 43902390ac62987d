import { BoundedMap } from '../../core/bounded-map.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { type Counts, isFinal } from '../../core/tasks/task.ts'
import type { Clock } from '../../disk/clock.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Executions } from '../storage/ports/executions.ts'
import type { TaskRecord } from '../storage/records/task.ts'

/** Tasks at once; the count of an evicted one starts again. */
const mostTasks = 1000
/** Less time says little about a rate, in milliseconds. */
const firstRate = 1000

interface OfTask {
  /** By host: so much of its file has passed. */
  readonly bytes: Map<number, number>
  /** Hosts that are known to have ended. */
  readonly ended: Set<number>
  readonly since: number
}

/** What of the files of running tasks has passed this server; what others of its store have carried is not known here. */
export interface Carried {
  /** Of the file that the host gets, or sends, so much has passed. */
  at(taskId: string, hostId: number, bytes: number): void
  /** Null where the task does not run, or has no files. */
  of(task: TaskRecord, counts: Counts): Promise<NonNullable<TaskSummary['transfer']> | null>
  /** By host: so much of its file has passed, of hosts that are not known to have ended. */
  passed(taskId: string): ReadonlyMap<number, number>
}

export const movesFiles = ({ copy, fetch, stdin }: TaskRecord): boolean =>
  Boolean(copy ?? fetch ?? stdin ?? false)

export function createCarried({
  executions,
  facts,
  clock,
}: {
  readonly executions: Pick<Executions, 'ofHosts'>
  readonly facts: LocalFacts
  readonly clock: Pick<Clock, 'monotonic'>
}): Carried {
  const tasks = new BoundedMap<string, OfTask>(mostTasks)
  facts.subscribe('taskEnded', ({ taskId }) => tasks.delete(taskId))

  /** What hosts that have ended did not take is not to come any more. */
  async function noteEnds(taskId: string, { bytes, ended }: OfTask): Promise<void> {
    const open = [...bytes.keys()].filter((hostId) => !ended.has(hostId))
    for (const { execution } of await executions.ofHosts(taskId, open))
      if (isFinal(execution.status)) ended.add(execution.hostId)
  }

  return {
    at(taskId, hostId, bytes) {
      let task = tasks.get(taskId)
      if (task === undefined) {
        task = { bytes: new Map(), ended: new Set(), since: clock.monotonic() }
        tasks.set(taskId, task)
      }
      task.bytes.set(hostId, bytes)
    },
    async of(task, counts) {
      if (task.status !== 'RUNNING' || !movesFiles(task)) return null
      const size = task.copy?.file.size ?? task.stdin?.size ?? null
      const known = tasks.get(task.id)
      if (known) await noteEnds(task.id, known)
      let bytes = 0
      let ofEnded = 0
      for (const [hostId, passed] of known?.bytes ?? []) {
        bytes += passed
        if (known?.ended.has(hostId)) ofEnded += passed
      }
      const milliseconds = known ? clock.monotonic() - known.since : 0
      return {
        bytes,
        total: size === null ? null : ofEnded + (counts.PENDING + counts.RUNNING) * size,
        bytesPerSecond: milliseconds < firstRate ? null : Math.round((bytes / milliseconds) * 1000),
      }
    },
    passed(taskId) {
      const { bytes = [], ended } = tasks.get(taskId) ?? {}
      return new Map([...bytes].filter(([hostId]) => ended?.has(hostId) !== true))
    },
  }
}
