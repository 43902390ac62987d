import { setTimeout as delay } from 'node:timers/promises'
import { BoundedMap } from '../../core/bounded-map.ts'
import { RsmError } from '../../core/errors.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { type Counts, isFinal } from '../../core/tasks/task.ts'
import type { Clock } from '../../disk/clock.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Shared } from '../storage/ports/cluster.ts'
import type { ExecutionReads } from '../storage/ports/executions.ts'
import type { Store } from '../storage/ports/store.ts'
import type { FileRecord } from '../storage/records/file.ts'
import type { TaskRecord } from '../storage/records/task.ts'
import { type Arrival, fetchBound, tooLarge } from './append-upload.ts'
import type { FileKeeper } from './files.ts'

/** Tasks with a rate at once; an evicted one restarts with a burst. */
const mostRates = 1000
/** Milliseconds of backlog above which requests are refused; seconds until a retry. */
const longestBacklog = 20_000
const askAgainAfter = 15

interface Parts {
  readonly store: Store
  readonly executions: ExecutionReads
  readonly files: FileKeeper
  readonly carried: Pick<Carried, 'at'>
  readonly shared: Pick<Shared, 'servers'> | null
  readonly facts: LocalFacts
  readonly clock: Clock
}

/** File transfers between this server and agents (contract §13). */
export interface Transfers {
  /**
   * Opens a file for an agent if an open execution on its host uses it; call `sent` with the offset reached.
   * Errors: `not_found`; `unavailable` while the task's rate limit is exceeded.
   */
  forAgent(
    hostId: number,
    fileId: string,
  ): Promise<{ file: FileRecord; rate: Rate | null; sent: (bytes: number) => void }>
  /**
   * Stores bytes that a task fetches from a host; returns the next offset. `sha256`: of the whole file, sent
   * with its end. Errors: `not_found` if no execution there fetches; `unavailable` while the task's rate
   * limit is exceeded; as FileKeeper.add.
   */
  fromAgent(hostId: number, taskId: string, arrival: Arrival & { sha256: string | null }): Promise<number>
}

export function createTransfers({
  store,
  executions,
  files,
  carried,
  shared,
  facts,
  clock,
}: Parts): Transfers {
  const rates = new BoundedMap<string, Rate>(mostRates)

  /** Splits the task's rate limit evenly among live servers. */
  async function rateOf({ id, limitRate }: TaskRecord): Promise<Rate | null> {
    if (limitRate === undefined) return null
    const known = rates.get(id)
    if (known) return known
    const living = shared === null ? 1 : (await shared.servers()).filter(({ isLiving }) => isLiving).length
    // A concurrent call may have created it.
    const made = rates.get(id)
    if (made) return made
    const rate = createRate(limitRate / Math.max(1, living), () => clock.monotonic())
    rates.set(id, rate)
    return rate
  }

  /** Errors: `unavailable` while its backlog is too long. */
  async function openRate(task: TaskRecord): Promise<Rate | null> {
    const rate = await rateOf(task)
    if (rate === null || rate.backlog <= longestBacklog) return rate
    throw new RsmError('unavailable', `Task ${task.id} exceeds its rate limit`, { retryAfter: askAgainAfter })
  }

  async function isOpen(taskId: string, hostId: number): Promise<boolean> {
    const found = await executions.find(taskId, hostId)
    return found !== undefined && found.execution.sentAt !== null && !isFinal(found.execution.status)
  }

  return {
    async forAgent(hostId, fileId) {
      const where = { equals: { fileId, status: 'RUNNING' as const } }
      for (const task of (await store.query('tasks', { where })).items) {
        if (!(await isOpen(task.id, hostId))) continue
        const file = await store.get('files', fileId)
        const sent = (bytes: number) => carried.at(task.id, hostId, bytes)
        if (file) return { file, rate: await openRate(task), sent }
      }
      throw new RsmError('not_found', `No execution on this host needs file ${fileId}`)
    },
    async fromAgent(hostId, taskId, { sha256, ...arrival }) {
      const task = await store.get('tasks', taskId)
      if (!task?.fetch || task.status !== 'RUNNING' || !(await isOpen(taskId, hostId)))
        throw new RsmError('not_found', `Task ${taskId} fetches no file from this host`)
      const rate = await openRate(task)
      const maxSize = fetchBound(task, files.maxFileSize)
      if (arrival.length !== null && arrival.offset + arrival.length > maxSize) throw tooLarge(maxSize)
      const known = await files.fetched(task, hostId)
      const file = sha256 === null ? known : { ...known, sha256 }
      // The agent missed the response and repeats the end.
      if (known.isComplete && arrival.end && known.sha256 === sha256) return known.size ?? 0
      const { offset } = await files.add(file, { ...arrival, maxSize })
      carried.at(taskId, hostId, offset)
      // The execution may have ended meanwhile.
      if (!(await isOpen(taskId, hostId))) facts.publish('fetchEnded', { taskId, hostId })
      // The bytes are stored; delaying the response slows down the next ones.
      if (rate !== null) await rate.take(offset - arrival.offset)
      return offset
    },
  }
}

/** Milliseconds of bytes that may exceed the rate after a pause. */
const burst = 200

/** Limits the bytes per second of all its users together. */
export interface Rate {
  /** Milliseconds until new bytes would pass. */
  readonly backlog: number
  /** Resolves when these bytes may pass. If `signal` aborts the wait, their share is returned. */
  take(bytes: number, signal?: AbortSignal): Promise<void>
  /** Piece size for an even flow, at most `most`. */
  piece(most: number): number
}

export function createRate(bytesPerSecond: number, now: () => number): Rate {
  let free = 0
  return {
    get backlog() {
      return Math.max(0, free - now())
    },
    async take(bytes, signal) {
      const cost = (bytes / bytesPerSecond) * 1000
      free = Math.max(free, now() - burst) + cost
      const wait = free - now()
      if (wait <= 0) return
      try {
        await delay(wait, undefined, signal && { signal })
      } catch (error) {
        free -= cost
        throw error
      }
    },
    piece: (most) => Math.max(1024, Math.min(most, Math.floor(bytesPerSecond / 10))),
  }
}

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
  readonly executions: ExecutionReads
  readonly facts: LocalFacts
  readonly clock: Pick<Clock, 'monotonic'>
}): Carried {
  const tasks = new BoundedMap<string, OfTask>(mostTasks)
  facts.subscribe('taskEnded', ({ taskId }) => tasks.delete(taskId))

  /** Hosts that ended no longer expect the rest of their files. */
  async function noteEnds(taskId: string, { bytes, ended }: OfTask): Promise<void> {
    const open = [...bytes.keys()].filter((hostId) => !ended.has(hostId))
    for (const { execution } of await executions.page(taskId, { hostIds: open }))
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
