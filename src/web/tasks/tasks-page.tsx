import { useEffect, useState } from 'preact/hooks'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { all, said } from '../api.ts'
import { followStream } from '../event-stream.ts'
import { Badge } from '../parts/badge.tsx'
import { shownDuration, shownTime } from '../parts/time.ts'
import { useTitle } from '../parts/use-title.ts'
import { hrefOf } from '../route.ts'
import { countsSaid, nameOf } from './task-words.ts'

const mostRows = 100

export function TasksPage() {
  useTitle('Tasks')
  const [tasks, setTasks] = useState<readonly TaskSummary[] | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => {
    const leave = new AbortController()
    const { signal } = leave
    const read = () =>
      all<TaskSummary>('api/tasks', {}, mostRows).then(
        (found) => {
          setTasks(found)
          setFault('')
        },
        (error: unknown) => setFault(said(error)),
      )
    void read()
    const apply = ({ task }: TaskEvent) =>
      setTasks((now = []) =>
        now.some(({ taskId }) => taskId === task.taskId)
          ? now.map((one) => (one.taskId === task.taskId ? task : one))
          : [task, ...now].slice(0, mostRows),
      )
    followStream('api/events?type=task', {
      signal,
      onEvent({ event, data }) {
        if (event === 'task') apply(JSON.parse(data) as TaskEvent)
        else void read()
      },
      onCut: () => void read(),
    }).catch((error: unknown) => setFault(said(error)))
    return () => leave.abort()
  }, [])
  return (
    <section class="page">
      <div class="heading">
        <h1>Tasks</h1>
      </div>
      {fault !== '' && (
        <p role="alert" class="fault">
          {fault}
        </p>
      )}
      {tasks !== undefined && tasks.length === 0 && <p class="empty">Nothing has run yet.</p>}
      {tasks !== undefined && tasks.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>Script</th>
              <th>Status</th>
              <th class="wide">Hosts</th>
              <th class="wide">By</th>
              <th>Started</th>
              <th class="wide">Took</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.taskId}>
                <td>
                  <a class="name" href={hrefOf('tasks', task.taskId)}>
                    {nameOf(task)}
                  </a>
                </td>
                <td>
                  <Badge state={task.status} />
                </td>
                <td class="wide">{countsSaid(task.counts)}</td>
                <td class="wide">{task.createdBy}</td>
                <td>{shownTime(task.startedAt ?? task.createdAt)}</td>
                <td class="wide">{shownDuration(task.duration)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
