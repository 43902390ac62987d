import type { CarriedBytes, LogQuery } from '../../../core/protocol/http/logs.ts'
import { formatEvent } from '../../../core/protocol/wire-text.ts'
import type { TaskResult } from '../../../core/tasks/task.ts'
import { type Carried, movesFiles } from '../../files/transfers.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { hostnamesOf, resultsOf, startCursor } from './logs.ts'

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
