import { useEffect, useState } from 'preact/hooks'
import { mendable } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { pause } from '../../net/backoff.ts'
import { all, call, errorText, followStream, withQuery } from '../api.ts'

/** Filters of the list; empty values match everything. */
export interface TaskFilter {
  status: string
  createdBy: string
  /** A host's name. */
  host: string
  scriptId: string
}

export const noFilter: TaskFilter = { status: '', createdBy: '', host: '', scriptId: '' }

/** Debounce of typing, in milliseconds. */
const typingPause = 250
/** Minimum milliseconds between two reads of a filtered list. */
const readPause = 1_000

async function hostIdOf(name: string, signal: AbortSignal): Promise<number | undefined> {
  if (name === '') return undefined
  const query = withQuery('api/hosts', { selector: name, size: 2 })
  const { content, totalElements } = await call<Page<Host>>('GET', query, { signal })
  if (totalElements !== 1) throw new Error(`host: ${totalElements} hosts match, not one`)
  return content[0]?.id
}

export interface LiveTasks {
  /** Undefined before the first answer. */
  tasks: readonly TaskSummary[] | undefined
  hasMore: boolean
  fault: string
}

/** Live list of the newest tasks that match the filter, up to `most`. */
export function useTasks({ status, createdBy, host, scriptId }: TaskFilter, most: number): LiveTasks {
  const [live, setLive] = useState<LiveTasks>({ tasks: undefined, hasMore: false, fault: '' })
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const isNarrow = [status, createdBy, host, scriptId].some((value) => value !== '')
    const change = (next: (now: LiveTasks) => LiveTasks) => {
      if (!signal.aborted) setLive(next)
    }
    // Keep the list while disconnected; drop it if the filter is invalid.
    const fail = (error: unknown) =>
      change(({ tasks, hasMore }) => ({
        ...(mendable(error) ? { tasks, hasMore } : { tasks: undefined, hasMore: false }),
        fault: errorText(error),
      }))
    async function read(): Promise<void> {
      const hostId = await hostIdOf(host, signal)
      const query = { status, createdBy, hostId, scriptId }
      const tasks = await all<TaskSummary>('api/tasks', query, most + 1)
      change(() => ({ tasks: tasks.slice(0, most), hasMore: tasks.length > most, fault: '' }))
    }
    let reading: Promise<void> | undefined
    const refresh = (wait = 0) => {
      reading ??= pause(wait, signal)
        .then(() => {
          reading = undefined
          return signal.aborted ? undefined : read()
        })
        .catch(fail)
    }
    const apply = ({ task }: TaskEvent) =>
      change((now) => {
        const { tasks = [] } = now
        const isKnown = tasks.some(({ taskId }) => taskId === task.taskId)
        const next = isKnown
          ? tasks.map((one) => (one.taskId === task.taskId ? task : one))
          : [task, ...tasks].slice(0, most)
        return { ...now, tasks: next }
      })
    refresh(isNarrow ? typingPause : 0)
    followStream('api/events?type=task', {
      signal,
      onEvent({ event, data }) {
        if (event !== 'task') refresh()
        else if (isNarrow) refresh(readPause)
        else apply(JSON.parse(data) as TaskEvent)
      },
      onCut: () => refresh(),
    }).catch(fail)
    return () => controller.abort()
  }, [status, createdBy, host, scriptId, most])
  return live
}
