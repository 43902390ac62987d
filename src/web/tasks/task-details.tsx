import { useState } from 'preact/hooks'
import { gateLine } from '../../cli/task/plan-view.ts'
import { counted, showBytes } from '../../cli/text/amounts.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import type { TaskScript, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { showLimits } from '../../core/tasks/limits.ts'
import { type BatchSize, runsScript, type TaskResult } from '../../core/tasks/task.ts'
import { call, errorText } from '../api.ts'
import { Fault, HostNames } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { hasGates } from './task-words.ts'

const strategies: Record<TaskSummary['strategy'], string> = {
  PARALLEL: 'all at once',
  ROLLING: 'batch by batch',
  SEQUENTIAL: 'one after the other',
}

const batchesText = (size: BatchSize | null) =>
  size === null ? '' : `, batches of ${Array.isArray(size) ? size.join(', then ') : size}`

const timeoutText = (seconds: number) => (seconds === 0 ? 'none' : `${seconds} s on each host`)

const scriptText = ({ scriptName, scriptId, scriptVersion, type }: TaskSummary) =>
  scriptId === null
    ? `${scriptName === null ? '' : `${scriptName}, `}ad hoc (${type})`
    : `${scriptName ?? scriptId}, version ${scriptVersion ?? 1} (${type})`

interface Read {
  script: TaskScript | null
  cluster: string | null
}

async function read({ taskId, type, clusterId }: TaskSummary): Promise<Read> {
  const script = runsScript(type)
    ? await call<TaskScript>('GET', `api/tasks/${encodeURIComponent(taskId)}/script`)
    : null
  // The cluster may have been removed since.
  const cluster =
    clusterId === null
      ? null
      : await call<Cluster>('GET', `api/clusters/${clusterId}`).then(
          ({ name }) => name,
          () => `${clusterId}`,
        )
  return { script, cluster }
}

/** Script, params, hosts and options of a task; loaded when opened. */
export function TaskDetails({ task, results }: { task: TaskSummary; results: readonly TaskResult[] }) {
  const [known, setKnown] = useState<Read | undefined>()
  const [fault, setFault] = useState('')
  const [isOpen, setOpen] = useState(false)
  const open = (isNow: boolean) => {
    setOpen(isNow)
    if (isNow && known === undefined)
      read(task).then(setKnown, (error: unknown) => setFault(errorText(error)))
  }
  const params = Object.entries(known?.script?.params ?? {}).map(([name, value]) => `${name}=${value}`)
  const secrets = (known?.script?.secretParams ?? []).map((name) => `${name} (secret)`)
  const texts = [
    ['Script', known?.script?.content],
    ['Verify', known?.script?.verify?.content],
    ['Rollback', known?.script?.rollback?.content],
  ] as const
  const rows: [label: string, value: string | null][] = [
    runsScript(task.type) ? ['Script', scriptText(task)] : ['Type', task.type],
    ['Verify', gateLine(task.verify)],
    ['Rollback', gateLine(task.rollback)],
    ['Params', [...params, ...secrets].join('\n') || null],
    ['Cluster', known?.cluster ?? null],
    ['Strategy', strategies[task.strategy] + batchesText(task.batchSize)],
    ['Timeout', timeoutText(task.timeout)],
    ['Run as', task.runAs ?? (runsScript(task.type) ? 'the agent’s user' : null)],
    ['Stdin', task.stdin === null ? null : `${showBytes(task.stdin.size)}, SHA-256 ${task.stdin.sha256}`],
    ['Limits', task.limits === null ? null : showLimits(task.limits)],
    ['Created', showTime(task.createdAt, false)],
    ['Ended', task.completedAt === null ? null : showTime(task.completedAt, false)],
    ['SHA-256', known?.script?.sha256 ?? null],
  ]
  return (
    <details class="what-ran" onToggle={(event) => open(event.currentTarget.open)}>
      <summary>What ran, where and how</summary>
      <Fault text={fault} />
      {isOpen && (
        <dl>
          {rows.map(
            ([label, value]) =>
              value !== null && (
                <div key={label}>
                  <dt>{label}</dt>
                  <dd>
                    {value.split('\n').map((line) => (
                      <div key={line}>{sanitizeLine(line)}</div>
                    ))}
                  </dd>
                </div>
              ),
          )}
          <div>
            <dt>{counted(results.length, 'host')}</dt>
            <dd>
              <HostNames names={results.map(({ hostname }) => hostname)} />
            </dd>
          </div>
          {task.retryOf !== null && (
            <div>
              <dt>Retry of</dt>
              <dd>
                <a href={hrefOf('tasks', task.retryOf)}>{task.retryOf}</a>
              </dd>
            </div>
          )}
        </dl>
      )}
      {texts.map(
        ([title, text]) =>
          text !== undefined && (
            <section key={title}>
              {hasGates(task) && <h2>{title}</h2>}
              <pre class="script code" tabIndex={0} aria-label={title}>
                {sanitize(text)}
              </pre>
            </section>
          ),
      )}
    </details>
  )
}
