import type { Client } from '../../client/client.ts'
import { watchTask } from '../../client/watch.ts'
import type { LogQuery } from '../../core/protocol/http/logs.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { finalTask, haltedUnknown } from './final-task.ts'
import type { Outputs } from './outputs.ts'
import { SilentHosts } from './silent-hosts.ts'

/** How long after a signal a reader that does not read is waited for, in milliseconds. */
const haltTime = 4_000
/** … of which the server may take so much to say how the task stands: nothing has to be cancelled first. */
const lastLook = 3_000

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** How the watching ended: with the task, or before it by a signal, which changes nothing in the task. */
export interface Watched {
  readonly task: Task
  readonly interrupted?: 130 | 143
  /** The last output that was shown; undefined where none was. */
  readonly last?: number | undefined
}

/** Shows a task that was started elsewhere, from where `query` begins to its end; `select` narrows what is known of it. */
export async function watchToEnd(
  client: Client,
  taskId: string,
  options: { readonly query: LogQuery; readonly outputs: Outputs; readonly select?: (task: Task) => Task },
): Promise<Watched> {
  const { query, outputs, select = (task) => task } = options
  const halt = new AbortController()
  const silent = new SilentHosts((line) => outputs.notice(line))
  let interrupted: Watched['interrupted']
  let last = query.after
  let ending: NodeJS.Timeout | undefined
  const stop = (signal: NodeJS.Signals) => {
    interrupted = signal === 'SIGTERM' ? signals.SIGTERM : signals.SIGINT
    halt.abort()
    const exit = interrupted
    ending = setTimeout(() => process.exit(exit), haltTime)
  }
  for (const signal of Object.keys(signals)) process.once(signal, stop)
  const onCut = (error: Error, again: boolean) => {
    if (!again) outputs.notice(`${error.message}; trying again for 5 minutes`)
  }
  const endAsKnown = async () => {
    const { task } = outputs.known
    if (task !== undefined) await outputs.end(select(task))
  }
  try {
    try {
      for await (const event of watchTask(client.api, taskId, { query, signal: halt.signal, onCut })) {
        await outputs.event(event)
        if (query.hostId === undefined) silent.event(event)
        if (event.type === 'output') last = event.entry.id
      }
    } catch (error) {
      if (interrupted === undefined) {
        await endAsKnown()
        throw error
      }
    }
    const { task: known } = outputs.known
    const isEnded = known !== undefined && known.status !== 'RUNNING'
    const ended = isEnded
      ? known
      : await finalTask(client, taskId, halt.signal, lastLook).catch(async (error: unknown) => {
          await endAsKnown()
          throw interrupted === undefined ? error : haltedUnknown(interrupted, taskId, error)
        })
    silent.close()
    const task = select(ended)
    await outputs.end(task)
    return interrupted === undefined ? { task } : { task, interrupted, last }
  } finally {
    clearTimeout(ending)
    silent.close()
    for (const signal of Object.keys(signals)) process.off(signal, stop)
  }
}
