import { useEffect, useState } from 'preact/hooks'
import { showDuration } from '../../cli/text/time.ts'
import { said } from '../api.ts'
import { Badge } from '../parts/badge.tsx'
import { Fault } from '../parts/fault.tsx'
import { Time } from '../parts/time.tsx'
import { useTitle } from '../parts/use-title.ts'
import { hrefOf } from '../route.ts'
import { allowed } from '../session.ts'
import { FileFacts } from './file-facts.tsx'
import { followTask, type TaskView } from './follow-task.ts'
import { HostList } from './host-list.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskOutput } from './task-output.tsx'
import { countsSaid, nameOf } from './task-words.ts'
import { WhatRan } from './what-ran.tsx'

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

  if (view === undefined)
    return (
      <section class="page">
        <h1>Task</h1>
        {fault === '' ? <p class="hint">Loading …</p> : <Fault text={fault} />}
      </section>
    )
  const { task, results, carried, isCut } = view
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
        {task.createdBy} · <Time at={task.createdAt} /> ·{' '}
        {task.duration === null ? 'running' : showDuration(task.duration)} ·{' '}
        <a href={hrefOf('tasks', taskId)}>{taskId}</a>
      </p>
      <FileFacts task={task} />
      <WhatRan key={taskId} task={task} results={results} />
      <Fault text={fault} />
      <div class="split">
        <HostList
          task={task}
          results={results}
          carried={carried}
          hostId={hostId}
          onChoose={setHostId}
          onFault={setFault}
        />
        <TaskOutput view={view} host={results.find((result) => result.hostId === hostId)} />
      </div>
    </section>
  )
}
