import type { GatePhase } from '../../../core/tasks/gates.ts'
import type { Stream, TaskResult } from '../../../core/tasks/task.ts'
import type { Age } from '../../../disk/agreed-clock.ts'

export interface NewEntry {
  hostId: number
  stream: Stream
  sequence: number
  timestamp: string
  /** Absent for output of the script itself. */
  phase?: GatePhase | undefined
  data: string
  /** The same as JSON, quotes included, if it arrived so: stored without encoding it again. */
  json?: Uint8Array | undefined
}

/** Stored piece; `id` is the cursor and ascends over the whole task (contract §5). */
export interface StoredEntry extends Omit<NewEntry, 'json'> {
  id: number
}

/** Stored piece as it is in the log. */
export interface StoredLine {
  id: number
  hostId: number
  /** Fields of NewEntry as a JSON object in UTF-8; for a damaged piece, a sentence on stderr. */
  json: Buffer
  damage?: string
}

export interface ReadQuery {
  /** Only entries with a larger id; 0 for all. */
  after: number
  hostId?: number | undefined
  stream?: Stream | undefined
  /** Maximum number of entries; a read may stop earlier, at about 256 KiB. */
  limit: number
}

export interface ReadBackQuery extends Omit<ReadQuery, 'after'> {
  before: number
}

/** Stored output of one host: where appending continues. */
export interface Progress {
  /** -1 when nothing is stored. */
  lastSequence: number
  stdoutBytes: number
  stderrBytes: number
  /** Number of entries. */
  frames: number
}

/** Output of tasks: append, and read from a cursor. Slow readers cost nothing: each has its own pace. */
export interface Outputs {
  /** Resolves once the entry is durable; readers may see it before. Entries keep the calls' order. */
  append(taskId: string, entry: NewEntry): Promise<void>
  /**
   * `next` is the cursor to continue from; no entries means the end for now. Errors: `gone` if the next entry
   * is damaged; its cursor is in the hint. `readBefore` does the same.
   */
  read(taskId: string, query: ReadQuery): Promise<{ entries: StoredEntry[]; next: number }>
  /**
   * The newest matching entries before an id, oldest first. One read examines at most 65,536 entries: if none
   * match, the next read continues at `previous`. `previous` is 0 at the beginning of the log; `next` is as
   * in `read`.
   */
  readBefore(
    taskId: string,
    query: ReadBackQuery,
  ): Promise<{ entries: StoredEntry[]; next: number; previous: number }>
  /** Like `read`, without decoding entries that are only forwarded. */
  readLines(taskId: string, query: ReadQuery): Promise<{ lines: StoredLine[]; next: number }>
  /** Cursor that exactly the last `count` matching entries follow. */
  cursorBeforeLast(
    taskId: string,
    count: number,
    query: Pick<ReadQuery, 'hostId' | 'stream'>,
  ): Promise<number>
  /** Damage found by reads, by host (0: unknown host): a sentence with file and position. */
  damages(taskId: string): ReadonlyMap<number, string>
  /** Stored output of each host, read from disk, to resume a task after a restart. */
  progress(taskId: string): Promise<Map<number, Progress>>
  /** Frees the files: no more output follows. */
  finish(taskId: string): Promise<void>
  /** Bytes of a task on disk. */
  size(taskId: string): Promise<number>
  forget(taskId: string): Promise<void>
  close(): Promise<void>
}

/** Part of a task's results: up to `limit` from position `offset` of its plan, or those of some hosts. */
export type Part =
  | { readonly offset: number; readonly limit: number }
  | { readonly hostIds: readonly number[] }

/** Archive of a finished task beside its output: its scripts and every host's result. */
export interface TaskRemains {
  script: string
  results: TaskResult[]
  /** Texts of its gates; absent without gates. */
  gates?: { verify: string | null; rollback: string | null }
  /** Params of the task; absent if its record has them. */
  params?: Record<string, string>
}

export interface Results {
  write(taskId: string, archived: TaskRemains): Promise<void>
  /** Null if the results are lost; the task's counts stay valid. Errors: `gone` if damaged. */
  read(taskId: string, part?: Part): Promise<TaskRemains | null>
  forget(taskId: string): Promise<void>
  list(): Promise<string[]>
  readonly orphans: Orphans
}

/** Data without a record in the store. It is not deleted at once: the store may be the wrong one. */
export interface Orphans {
  /** Moves them to a folder named after the time; returns that folder. */
  moveAside(names: readonly string[], now: number): Promise<string>
  /** Removes what was moved aside at least `days` days ago; 0 = never. */
  sweep(days: number, age: Age): Promise<void>
}
