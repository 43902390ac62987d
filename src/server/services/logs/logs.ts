import { RsmError } from '../../../core/errors.ts'
import type { CarriedBytes, LogEntry, LogPage, LogQuery } from '../../../core/protocol/http/logs.ts'
import { formatEvent } from '../../../core/protocol/wire-text.ts'
import type { TaskResult } from '../../../core/tasks/task.ts'
import { type Carried, movesFiles } from '../../files/transfers.ts'
import type { Part, StoredEntry } from '../../storage/ports/outputs.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'

const defaultSize = 500

/** Results of a task; empty if their file is damaged, because the output can still be read. */
async function resultsOf(context: Context, task: TaskRecord, part?: Part): Promise<TaskResult[]> {
  return context.engine.results(task, part).catch((error: unknown) => {
    if (error instanceof RsmError && error.code === 'gone') return []
    throw error
  })
}

/** Hostnames of a task by id: entries are stored without them. */
async function hostnamesOf(
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
async function startCursor(context: Context, taskId: string, query: LogQuery): Promise<number> {
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

/** Milliseconds between polls, which make up for lost hints. */
const lostHint = 2000
/** Milliseconds between checks of the progress of file transfers. */
const carriedEvery = 1000

/**
 * Follows the log of a task from a cursor to its end. Yields batches of events (contract §5; only `output` has an
 * id). The caller takes the next batch once it has sent the last, so a slow reader holds no memory: output stays on
 * disk, and changes of one host are merged.
 */
export async function* followLog(
  context: Context,
  first: TaskRecord,
  query: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<string | Buffer> {
  const { store, engine, hints, batches, readers } = context
  const taskId = first.id
  let wake: () => void = () => undefined
  let changed = true
  let taskChanged = false
  const hosts = new Set<number>()
  const note = () => {
    changed = true
    wake()
  }
  const noteHost = (hostId: number) => {
    if (query.hostId === undefined || hostId === query.hostId) hosts.add(hostId)
  }
  const unsubscribe = [
    readers.enter(taskId),
    hints.subscribe('output', taskId, note),
    hints.subscribe('task', taskId, ({ hostId }) => {
      if (hostId === null) taskChanged = true
      else noteHost(hostId)
      note()
    }),
  ]
  const isCarrying = movesFiles(first)
  const carried = carriedNews(engine, taskId, query.hostId)
  const backstop = setInterval(note, isCarrying ? carriedEvery : lostHint)
  signal.addEventListener('abort', note)
  try {
    const nameOf = await hostnamesOf(context, first)
    let after = await startCursor(context, taskId, query)
    let { cursor } = await engine.changedHosts(taskId)
    let summary = await engine.summary(first)
    yield formatEvent('task', summary)
    while (!signal.aborted) {
      if (!changed)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      changed = false
      const news = await engine.changedHosts(taskId, cursor)
      cursor = news.cursor
      if (news.hostIds.length > 0) taskChanged = true
      for (const hostId of news.hostIds) noteHost(hostId)
      // Report the current state only after the output that preceded it.
      const reported = new Set(hosts)
      hosts.clear()
      const results = await engine.resultsOf(taskId, reported)
      const task = (await store.get('tasks', taskId)) ?? first
      const wasChanged = taskChanged
      taskChanged = false
      for (let more = true; more && !signal.aborted; ) {
        const { hostId, stream } = query
        const batch = await batches.after(taskId, { after, hostId, stream }, nameOf)
        more = batch.next !== after
        after = batch.next
        if (batch.events) yield batch.events
      }
      if (task.status !== 'RUNNING') {
        const ended = await resultsOf(context, task)
        const params = await engine.params(task)
        const end = { ...(await engine.summary(task)), params, server: null, results: ended }
        const last = end.results.filter(({ hostId }) => reported.has(hostId) || hosts.has(hostId))
        yield hostEvents(last) + formatEvent('end', end)
        return
      }
      const { transfer } = summary
      if (wasChanged || isCarrying) summary = await engine.summary(task)
      const hasNews = wasChanged || summary.transfer?.bytes !== transfer?.bytes
      const events =
        hostEvents(results) + (hasNews ? formatEvent('task', summary) : '') + carriedEvent(carried())
      if (events !== '') yield events
    }
  } finally {
    clearInterval(backstop)
    for (const end of unsubscribe) end()
    signal.removeEventListener('abort', note)
  }
}

const hostEvents = (results: readonly TaskResult[]) =>
  results.map((result) => formatEvent('host', result)).join('')

const carriedEvent = (hosts: CarriedBytes['hosts']) =>
  hosts.length === 0 ? '' : formatEvent('carried', { hosts } satisfies CarriedBytes)

/** Returns a function that reports hosts whose transfer advanced since its last call; only `hostId` if given. */
function carriedNews(
  { passed }: Pick<Carried, 'passed'>,
  taskId: string,
  hostId: number | undefined,
): () => CarriedBytes['hosts'] {
  let reported: ReadonlyMap<number, number> = new Map()
  return () => {
    const now = passed(taskId)
    const news = [...now]
      .filter(([id, bytes]) => reported.get(id) !== bytes && (hostId === undefined || hostId === id))
      .map(([id, bytes]) => ({ hostId: id, bytes }))
    reported = now
    return news
  }
}
