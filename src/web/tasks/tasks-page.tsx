import { useEffect, useState } from 'preact/hooks'
import { showDuration } from '../../cli/text/time.ts'
import { mendable } from '../../core/errors.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { runsScript } from '../../core/tasks/task.ts'
import { pause } from '../../net/backoff.ts'
import { all, call, errorText, followStream, withQuery } from '../api.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Fault, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { useScripts } from '../run/scripts.tsx'
import { countsText, nameOf } from './task-words.ts'

const rowsStep = 100
const statuses = ['RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED']

export function TasksPage() {
  useTitle('Tasks')
  const [filter, setFilter] = useState(noFilter)
  const [most, setMost] = useState(rowsStep)
  // Without scripts only that filter is missing; the list reports its own errors.
  const scripts = useScripts()
  const { tasks, hasMore, fault } = useTasks(filter, most)
  const narrow = (name: keyof TaskFilter) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFilter((now) => ({ ...now, [name]: value.trim() }))
  }
  const isNarrow = Object.values(filter).some((value) => value !== '')
  return (
    <section class="page">
      <div class="heading">
        <h1>Tasks</h1>
      </div>
      <div class="bar filters" role="search">
        <input
          type="search"
          aria-label="Host"
          placeholder="Host   /"
          spellcheck={false}
          onInput={narrow('host')}
        />
        <input
          type="search"
          aria-label="User"
          placeholder="User"
          spellcheck={false}
          onInput={narrow('createdBy')}
        />
        <select aria-label="Script" onChange={narrow('scriptId')}>
          <option value="">Any script</option>
          {scripts?.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        <select aria-label="Status" onChange={narrow('status')}>
          <option value="">Any status</option>
          {statuses.map((status) => (
            <option key={status} value={status}>
              {status.toLowerCase()}
            </option>
          ))}
        </select>
      </div>
      <Fault text={fault} />
      {tasks?.length === 0 && fault === '' && (
        <p class="empty">{isNarrow ? 'No task matches.' : 'Nothing has run yet.'}</p>
      )}
      {tasks !== undefined && tasks.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>What</th>
              <th class="w-badge">Status</th>
              <th class="w-counts">Hosts</th>
              <th class="w-user">By</th>
              <th class="w-time">Started</th>
              <th class="w-took">Took</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.taskId}>
                <td class="whole-line">
                  <a class="name" href={hrefOf('tasks', task.taskId)}>
                    <LongName text={nameOf(task)} />
                  </a>
                  {!runsScript(task.type) && <span class="tag type">{task.type}</span>}
                </td>
                <td>
                  <Badge state={task.status} />
                </td>
                <td>{countsText(task.counts)}</td>
                <td class="clip" data-label="By" title={task.createdBy}>
                  {task.createdBy}
                </td>
                <td data-label="Started">
                  <Time at={task.startedAt ?? task.createdAt} />
                </td>
                <td data-label="Took">{task.duration === null ? '–' : showDuration(task.duration)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hasMore && (
        <p class="more">
          <button type="button" onClick={() => setMost((now) => now + rowsStep)}>
            Show older tasks
          </button>
        </p>
      )}
    </section>
  )
}

/** Filters of the list; empty values match everything. */
interface TaskFilter {
  status: string
  createdBy: string
  /** A host's name. */
  host: string
  scriptId: string
}

const noFilter: TaskFilter = { status: '', createdBy: '', host: '', scriptId: '' }

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

interface LiveTasks {
  /** Undefined before the first answer. */
  tasks: readonly TaskSummary[] | undefined
  hasMore: boolean
  fault: string
}

/** Live list of the newest tasks that match the filter, up to `most`. */
function useTasks({ status, createdBy, host, scriptId }: TaskFilter, most: number): LiveTasks {
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
