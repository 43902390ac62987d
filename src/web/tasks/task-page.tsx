import { useEffect, useState } from 'preact/hooks'
import type { TaskResult } from '../../core/protocol/http/tasks.ts'
import { said } from '../api.ts'
import { Badge } from '../parts/badge.tsx'
import { shownDuration, shownTime } from '../parts/time.ts'
import { useTitle } from '../parts/use-title.ts'
import { hrefOf } from '../route.ts'
import { allowed } from '../session.ts'
import { followTask, type TaskView } from './follow-task.ts'
import { OutputPane } from './output-pane.tsx'
import { TaskActions } from './task-actions.tsx'
import { countsSaid, endSaid, nameOf } from './task-words.ts'

/** Hosts that are listed; those that did not succeed come first. */
const mostHosts = 300
const rank = ({ status }: TaskResult) =>
  status === 'SUCCESS' ? 3 : status === 'PENDING' || status === 'SKIPPED' ? 2 : status === 'RUNNING' ? 1 : 0

export function TaskPage({ taskId }: { taskId: string }) {
  const [view, setView] = useState<TaskView | undefined>()
  const [fault, setFault] = useState('')
  const [hostId, setHostId] = useState<number | undefined>()
  useTitle(view === undefined ? 'Task' : nameOf(view.task))
  useEffect(() => {
    const leave = new AbortController()
    followTask(taskId, leave.signal, setView, setFault).catch((error: unknown) => {
      if (!leave.signal.aborted) setFault(said(error))
    })
    return () => leave.abort()
  }, [taskId])

  const faultSaid = (
    <p role="alert" class="fault">
      {fault}
    </p>
  )
  if (view === undefined)
    return (
      <section class="page">
        <h1>Task</h1>
        {fault === '' ? <p class="hint">Loading …</p> : faultSaid}
      </section>
    )
  const { task, results, lines, isLater, isCut } = view
  const isRunning = task.status === 'RUNNING'
  const shown = hostId === undefined ? lines : lines.filter((line) => line.hostId === hostId)
  const sorted = [...results].sort((one, other) => rank(one) - rank(other))
  return (
    <section class="page whole task">
      <div class="heading">
        <h1>{nameOf(task)}</h1>
        <Badge state={task.status} />
        <span class="hint" role="status">
          {isCut ? 'The connection is lost; taking it up again …' : countsSaid(task.counts)}
        </span>
        <span class="spring" />
        {allowed('execute') && <TaskActions task={task} results={results} onFault={setFault} />}
      </div>
      <p class="hint">
        {`${task.createdBy} · ${shownTime(task.createdAt)} · ${isRunning ? 'running' : shownDuration(task.duration)} · `}
        <a href={hrefOf('tasks', taskId)}>{taskId}</a>
      </p>
      {faultSaid}
      <div class="split">
        <ul class="results" aria-label="Hosts">
          <li>
            <button type="button" aria-pressed={hostId === undefined} onClick={() => setHostId(undefined)}>
              {results.length === 1 ? '1 host' : `All ${results.length} hosts`}
            </button>
          </li>
          {sorted.slice(0, mostHosts).map((result) => (
            <li key={result.hostId}>
              <button
                type="button"
                aria-pressed={hostId === result.hostId}
                onClick={() => setHostId(result.hostId)}
              >
                <span class="host">{result.hostname}</span>
                <Badge state={result.status} />
                <small>
                  {[endSaid(result), result.duration === null ? '' : shownDuration(result.duration)]
                    .filter(Boolean)
                    .join(' · ')}
                </small>
              </button>
            </li>
          ))}
        </ul>
        <OutputPane lines={shown} isLater={isLater} isRunning={isRunning} />
      </div>
    </section>
  )
}
