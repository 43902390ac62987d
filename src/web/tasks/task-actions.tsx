import { useState } from 'preact/hooks'
import { counted } from '../../cli/text/amounts.ts'
import type { Started, TaskScript, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { runsScript, type TaskResult } from '../../core/tasks/task.ts'
import { call, errorText, newKey } from '../api.ts'
import { HostNames, Question } from '../parts/shown.tsx'
import { go } from '../route.ts'
import { nameOf } from './task-words.ts'

interface TaskActionsProps {
  task: TaskSummary
  results: readonly TaskResult[]
  onFault: (fault: string) => void
}

/** Input that a retry needs: values of secret params are not kept after a task's end. */
interface RetryAsked {
  key: string
  secretParams: readonly string[]
}

const isOpen = ({ status }: TaskResult) => status === 'PENDING' || status === 'RUNNING'

export function TaskActions({ task, results, onFault }: TaskActionsProps) {
  const [isCancelling, setCancelling] = useState(false)
  const [retry, setRetry] = useState<RetryAsked | undefined>()
  const path = `api/tasks/${encodeURIComponent(task.taskId)}`
  const name = nameOf(task)
  const fail = (error: unknown) => onFault(errorText(error))

  function askRetry(): void {
    onFault('')
    const secrets = runsScript(task.type)
      ? call<TaskScript>('GET', `${path}/script`).then(({ secretParams }) => secretParams)
      : Promise.resolve([])
    secrets.then((secretParams) => setRetry({ key: newKey(), secretParams }), fail)
  }

  function startRetry({ key, secretParams }: RetryAsked, field: (name: string) => string): void {
    setRetry(undefined)
    const values = secretParams.map((param) => [param, field(param)])
    const body = secretParams.length === 0 ? {} : { secretParams: Object.fromEntries(values) }
    call<Started>('POST', `${path}/retry`, { body, headers: { 'idempotency-key': key } }).then(
      ({ taskId }) => go('tasks', taskId),
      fail,
    )
  }

  function cancel(): void {
    setCancelling(false)
    onFault('')
    call('POST', `${path}/cancel`, { body: {} }).catch(fail)
  }

  const open = results.filter(isOpen)
  const running = open.filter(({ status }) => status === 'RUNNING')
  const unsuccessful = results.filter(({ status }) => status !== 'SUCCESS')
  return (
    <>
      {task.status === 'RUNNING' && (
        <button type="button" class="danger" onClick={() => setCancelling(true)}>
          Cancel
        </button>
      )}
      {(task.status === 'FAILED' || task.status === 'CANCELLED') && (
        <button type="button" onClick={askRetry}>
          Retry failed hosts
        </button>
      )}
      {isCancelling && task.status === 'RUNNING' && (
        <Question
          title={`Cancel ‘${name}’ on ${counted(open.length, 'host')}?`}
          yes="Cancel the task"
          no="Let it run"
          isDangerous
          onYes={cancel}
          onNo={() => setCancelling(false)}
        >
          <p>
            {`It is stopped on ${counted(running.length, 'host')}; ${counted(open.length - running.length, 'host')} will not start.`}
          </p>
          <HostNames names={open.map(({ hostname }) => hostname)} />
        </Question>
      )}
      {retry && (
        <Question
          title={`Run ‘${name}’ again on ${counted(unsuccessful.length, 'host')}?`}
          yes={`Run on ${counted(unsuccessful.length, 'host')}`}
          no="Don’t run"
          onYes={(field) => startRetry(retry, field)}
          onNo={() => setRetry(undefined)}
        >
          <p>
            {`It did not succeed there. This is a new task, with the same ${runsScript(task.type) ? 'script, params and options' : 'options'}.`}
          </p>
          <HostNames names={unsuccessful.map(({ hostname }) => hostname)} />
          {retry.secretParams.map((param) => (
            <label key={param}>
              {param}
              <input name={param} type="password" required autoComplete="off" />
            </label>
          ))}
        </Question>
      )}
    </>
  )
}
