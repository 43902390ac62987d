import type { GatePhase } from '../../../core/tasks/gates.ts'
import type { Stream, TaskResult } from '../../../core/tasks/task.ts'
import type { Age } from '../../../disk/agreed-clock.ts'

/** A piece of output before it has its number. */
export interface NewEntry {
  hostId: number
  stream: Stream
  sequence: number
  timestamp: string
  /** Absent of what the script itself wrote. */
  phase?: GatePhase | undefined
  data: string
  /** The same as JSON, quotes included, where it came so: it is stored without being written anew. */
  json?: Uint8Array | undefined
}

/** A stored piece; `id` is the cursor: it ascends over the whole task (contract §5). */
export interface StoredEntry extends Omit<NewEntry, 'json'> {
  id: number
}

/** A stored piece as it stands in the log. */
export interface StoredLine {
  id: number
  hostId: number
  /** The fields of NewEntry as one JSON object, in UTF-8; of a damaged piece a sentence that says so, on stderr. */
  json: Buffer
  /** What is wrong with a damaged piece. */
  damage?: string
}

export interface ReadQuery {
  /** Only entries with a larger id; 0 for all. */
  after: number
  hostId?: number | undefined
  stream?: Stream | undefined
  /** At most so many entries; a read may also stop earlier, at about 256 KiB. */
  limit: number
}

export interface ReadBackQuery extends Omit<ReadQuery, 'after'> {
  /** Only entries with a smaller id. */
  before: number
}

/** What is stored of one host: where its output has to go on. */
export interface Progress {
  /** -1 when nothing is stored. */
  lastSequence: number
  stdoutBytes: number
  stderrBytes: number
  /** Entries that it came in. */
  frames: number
}

/**
 * The output of tasks: append, and read from a cursor. One of the ports behind which a fleet's store may stand; a slow
 * reader costs nothing, because it reads at its own pace from where it stands.
 */
export interface Outputs {
  /** Resolves when the entry is durable. Readers may see it a little earlier. Entries keep the order of the calls. */
  append(taskId: string, entry: NewEntry): Promise<void>
  /**
   * `next` is the cursor to go on from; no entries means that the end is reached for now. Errors: `gone` where the next
   * entry is damaged; its cursor is in the hint. So of `readBefore`, where one is.
   */
  read(taskId: string, query: ReadQuery): Promise<{ entries: StoredEntry[]; next: number }>
  /**
   * The newest entries of this selection before a place, oldest first. One read looks at 65,536 entries at most: without
   * any that fit, `previous` is where the next one goes on. It is 0 at the beginning of the log; `next` as of `read`.
   */
  readBefore(
    taskId: string,
    query: ReadBackQuery,
  ): Promise<{ entries: StoredEntry[]; next: number; previous: number }>
  /** As `read`, without decoding what is only passed on. */
  readLines(taskId: string, query: ReadQuery): Promise<{ lines: StoredLine[]; next: number }>
  /** The cursor after which exactly the last `count` entries of this selection follow. */
  cursorBeforeLast(
    taskId: string,
    count: number,
    query: Pick<ReadQuery, 'hostId' | 'stream'>,
  ): Promise<number>
  /** Damage that reads have found, by host (0: the host is unknown): a sentence with file and place. */
  damages(taskId: string): ReadonlyMap<number, string>
  /** What is stored of each host, read from disk: for taking up a task after a restart. */
  progress(taskId: string): Promise<Map<number, Progress>>
  /** No more output will come: frees the files. */
  finish(taskId: string): Promise<void>
  /** Bytes that a task takes on disk. */
  size(taskId: string): Promise<number>
  /** Removes what is stored of an ended task. */
  forget(taskId: string): Promise<void>
  close(): Promise<void>
}

/** Part of a task's results: at most `limit` from position `offset` of its plan, or those of some hosts. */
export type Part =
  | { readonly offset: number; readonly limit: number }
  | { readonly hostIds: readonly number[] }

/** What a finished task leaves beside its output: the text that ran and every host's result. */
export interface TaskRemains {
  script: string
  results: TaskResult[]
  /** The texts that followed on it; absent where none did. */
  gates?: { verify: string | null; rollback: string | null }
  /** Its params; absent where its record has them. */
  params?: Record<string, string>
}

/** The results of finished tasks, apart from the store. */
export interface Results {
  write(taskId: string, archived: TaskRemains): Promise<void>
  /** Null if the results are gone (a lost disk); the counts in the task are still valid. Errors: `gone` if they are damaged. */
  read(taskId: string, part?: Part): Promise<TaskRemains | null>
  /** Removes all that a task has left. */
  forget(taskId: string): Promise<void>
  /** The tasks that have left something. */
  list(): Promise<string[]>
  readonly orphans: Orphans
}

/** Files or folders that no record of the store knows: it may be the store that is the wrong one, so none is deleted at once. */
export interface Orphans {
  /** Moves those of this sweep to a folder named by its time; answers which folder that is. */
  moveAside(names: readonly string[], now: number): Promise<string>
  /** Removes what was moved aside at least so many days ago; 0 = never. */
  sweep(days: number, age: Age): Promise<void>
}
