import { BoundedMap } from '../../core/bounded-map.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { type Counts, isFinal } from '../../core/tasks/task.ts'
import type { Clock } from '../../disk/clock.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Executions } from '../storage/ports/executions.ts'
import type { TaskRecord } from '../storage/records/task.ts'

/** Tasks tracked at once; the count of an evicted one restarts. */
const mostTasks = 1000
/** Milliseconds before a rate is meaningful. */
const firstRate = 1000

interface OfTask {
  /** Bytes of its file passed so far, by host. */
  readonly bytes: Map<number, number>
  readonly ended: Set<number>
  readonly since: number
}

/** Counts file bytes of running tasks that passed this server; other servers count their own. */
export interface Carried {
  /** Sets the bytes passed of the file that the host receives or sends. */
  at(taskId: string, hostId: number, bytes: number): void
  /** Null if the task is not running or moves no files. */
  of(task: TaskRecord, counts: Counts): Promise<NonNullable<TaskSummary['transfer']> | null>
  /** Bytes passed of each host's file, for hosts not known to have ended. */
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

  /** Hosts that ended no longer expect the rest of their files. */
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
