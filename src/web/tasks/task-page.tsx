import { useEffect, useState } from 'preact/hooks'
import { transferParts } from '../../cli/files/shown.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { errorText } from '../api.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Fault, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { allowed } from '../session.ts'
import { HostList } from './host-list.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskDetails } from './task-details.tsx'
import { followTask, type TaskView } from './task-log.ts'
import { TaskOutput } from './task-output.tsx'
import { countsText, nameOf } from './task-words.ts'

const checks = {
  CHANGED: 'dry run: which hosts would change',
  DIFF: 'dry run: how the text would change',
} as const
const kinds = { FILE: 'one file', TREE: 'a directory with its content' } as const

type Row = readonly [label: string, value: string | undefined]

export function TaskPage({ taskId }: { taskId: string }) {
  const [view, setView] = useState<TaskView | undefined>()
  const [fault, setFault] = useState('')
  const [hostId, setHostId] = useState<number | undefined>()
  useTitle(view === undefined ? 'Task' : nameOf(view.task))
  useEffect(() => {
    const controller = new AbortController()
    followTask(taskId, controller.signal, setView, setFault).catch((error: unknown) => {
      if (!controller.signal.aborted) setFault(errorText(error))
    })
    return () => controller.abort()
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
          {isCut ? 'Connection lost; reconnecting …' : countsText(task.counts)}
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
      <TaskDetails key={taskId} task={task} results={results} />
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

/** `27 B`, `4.2 MB (4194321 bytes)`. */
const sizeText = (size: number) => (size < 1000 ? showBytes(size) : `${showBytes(size)} (${size} bytes)`)

function rowsOf({ copy, fetch, limitRate, transfer }: TaskSummary): Row[] {
  const carried: Row = [
    'So far',
    transfer ? transferParts(transfer.bytes, transfer.total, transfer.bytesPerSecond).join(' · ') : undefined,
  ]
  const rate: Row = [
    'Rate',
    limitRate === null ? undefined : `at most ${showBytes(limitRate)}/s to all hosts`,
  ]
  if (copy !== null) {
    const { file, path, kind, mode, owner, group, backup, check } = copy
    return [
      ['To', path],
      ['What', check === undefined ? kinds[kind] : `${kinds[kind]}, ${checks[check]}`],
      ['Size', sizeText(file.size)],
      ['SHA-256', file.sha256],
      ['Mode', mode],
      ['Owner', owner],
      ['Group', group],
      ['Backup', backup === true ? 'keeps replaced files' : undefined],
      rate,
      carried,
    ]
  }
  if (fetch === null) return []
  const { path, kind, follow } = fetch
  return [
    ['From', path],
    ['What', kinds[kind]],
    ['Symlinks', follow === true ? 'followed' : undefined],
    rate,
    carried,
  ]
}

function FileFacts({ task }: { task: TaskSummary }) {
  const rows = rowsOf(task)
  if (rows.length === 0) return null
  return (
    <dl class="file-facts" aria-label="File">
      {rows.map(
        ([label, value]) =>
          value !== undefined && (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <LongName text={sanitizeLine(value)} />
              </dd>
            </div>
          ),
      )}
    </dl>
  )
}
