import { RsmError } from '../../../core/errors.ts'
import type { LogEntry, LogPage, LogQuery } from '../../../core/protocol/http/logs.ts'
import type { TaskResult } from '../../../core/tasks/task.ts'
import type { Part, StoredEntry } from '../../storage/ports/outputs.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'

const defaultSize = 500

/** Results of a task; empty if their file is damaged, because the output can still be read. */
export async function resultsOf(context: Context, task: TaskRecord, part?: Part): Promise<TaskResult[]> {
  return context.engine.results(task, part).catch((error: unknown) => {
    if (error instanceof RsmError && error.code === 'gone') return []
    throw error
  })
}

/** Hostnames of a task by id: entries are stored without them. */
export async function hostnamesOf(
  context: Context,
  task: TaskRecord,
  part?: Part,
): Promise<(hostId: number) => string> {
  const results = await resultsOf(context, task, part)
  const names = new Map(results.map(({ hostId, hostname }) => [hostId, hostname]))
  return (hostId) => names.get(hostId) ?? String(hostId)
}

export function entryToApi(entry: StoredEntry, hostname: string): LogEntry {
  const { id, hostId, stream, sequence, timestamp, phase, data } = entry
  return { id, hostId, hostname, stream, sequence, timestamp, ...(phase && { phase }), data }
}

/** Cursor where a read begins: `after`, or before the last `tail` entries. */
export async function startCursor(context: Context, taskId: string, query: LogQuery): Promise<number> {
  if (query.after !== undefined || query.tail === undefined) return query.after ?? 0
  return context.outputs.cursorBeforeLast(taskId, query.tail, query)
}

/** `before` works with pages only. @throws RsmError `invalid`. */
export function checkBefore({ before, after, tail, follow }: LogQuery): void {
  if (before === undefined || (after === undefined && tail === undefined && follow !== true)) return
  throw new RsmError('invalid', 'Conflicting positions in the log', {
    fields: [{ field: 'before', message: 'cannot be combined with after, tail or follow' }],
  })
}

async function readPage(context: Context, taskId: string, query: LogQuery) {
  const { hostId, stream, before, size: limit = defaultSize } = query
  if (before !== undefined) return context.outputs.readBefore(taskId, { before, hostId, stream, limit })
  const after = await startCursor(context, taskId, query)
  const read = await context.outputs.read(taskId, { after, hostId, stream, limit })
  return { ...read, previous: after === 0 ? 0 : after + 1 }
}

/** A page of a task's log (contract §5). Pass `next` back as `after`, `previous` as `before`. */
export async function readLogs(context: Context, task: TaskRecord, query: LogQuery): Promise<LogPage> {
  const { entries, next, previous } = await readPage(context, task.id, query)
  const hostIds = [...new Set(entries.map(({ hostId }) => hostId))]
  const nameOf = await hostnamesOf(context, task, { hostIds })
  return {
    taskId: task.id,
    entries: entries.map((entry) => entryToApi(entry, nameOf(entry.hostId))),
    next,
    previous,
  }
}

export async function* plainLog(context: Context, task: TaskRecord, query: LogQuery): AsyncGenerator<string> {
  const only = task.hostCount === 1 ? (await context.engine.results(task))[0]?.hostId : undefined
  const hostId = query.hostId ?? only
  if (hostId === undefined)
    throw new RsmError('invalid', 'Plain text is the output of one host: add hostId', {
      fields: [{ field: 'hostId', message: 'is required for text/plain of a task on several hosts' }],
    })
  const leave = context.readers.enter(task.id)
  try {
    let after = await startCursor(context, task.id, query)
    for (;;) {
      const { stream } = query
      const read = await context.outputs.read(task.id, { after, hostId, stream, limit: defaultSize })
      if (read.entries.length === 0 && read.next === after) return
      after = read.next
      yield read.entries.map(({ data }) => data).join('')
    }
  } finally {
    leave()
  }
}
