import { useEffect, useRef, useState } from 'preact/hooks'
import { showBytes } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { errorText, send } from '../api.ts'
import { save } from '../parts/browser.ts'
import { toneOf } from '../parts/shown.tsx'
import { allowed } from '../session.ts'
import { inFileName } from './task-log.ts'
import { type PhaseState, phasesOf, phaseText, shortPhaseText } from './task-words.ts'

const marks: Record<string, string> = { good: '✓', bad: '✗', busy: '…' }

interface PhaseMarkProps {
  state: PhaseState
  /** Shows only a mark if a phase succeeded, and little more if not: a list may have hundreds. */
  isShort: boolean
}

function PhaseMark({ state, isShort }: PhaseMarkProps) {
  const name = state.phase.toLowerCase()
  const tone = toneOf(state.status)
  const isBad = tone === 'bad'
  return (
    <span class={`phase-state ${tone}`} title={`${name}: ${phaseText(state)}`}>
      <span aria-hidden="true">{marks[tone] ?? '–'}</span> {name}{' '}
      {isShort && isBad && <span aria-hidden="true">{shortPhaseText(state)}</span>}
      <span class={isShort ? 'unseen' : ''}>{phaseText(state)}</span>
    </span>
  )
}

interface HostPhasesProps extends Pick<PhaseMarkProps, 'isShort'> {
  task: TaskSummary
  result: TaskResult
}

/** States of script, verify and rollback on a host; nothing for a task without gates. */
export function HostPhases({ task, result, isShort }: HostPhasesProps) {
  const states = phasesOf(task, result)
  // Before the start the status is enough.
  if (states.length === 0 || (isShort && result.startedAt === null)) return null
  return (
    <span class={isShort ? 'phases brief' : 'phases'}>
      {states.map((state) => (
        <PhaseMark key={state.phase} state={state} isShort={isShort} />
      ))}
    </span>
  )
}

export function PhasesOfHost({ task, result }: Omit<HostPhasesProps, 'isShort'>) {
  const { hostname, error } = result
  if (phasesOf(task, result).length === 0) return null
  return (
    <div class="phases-of-host" role="group" aria-label={`Phases of ${sanitizeLine(hostname)}`}>
      <HostPhases task={task} result={result} isShort={false} />
      {error !== null && <small>{sanitizeLine(error)}</small>}
    </div>
  )
}

/** `web1-app.log`, `web1-app.tar`. */
function nameOf({ path, kind }: NonNullable<TaskSummary['fetch']>, hostname: string): string {
  const base = path.split('/').findLast((part) => part !== '') ?? 'root'
  return `${inFileName(hostname)}-${inFileName(base)}${kind === 'TREE' ? '.tar' : ''}`
}

interface FetchedFileProps {
  task: TaskSummary
  result: TaskResult
  onFault: (fault: string) => void
}

/** Button that saves the file fetched from a host; nothing without a file or the right to it. */
export function FetchedFile({ task: { taskId, fetch }, result, onFault }: FetchedFileProps) {
  const { hostId, hostname, status } = result
  const [isBusy, setBusy] = useState(false)
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  if (fetch === null || status !== 'SUCCESS' || !allowed('execute')) return null

  async function load(): Promise<void> {
    const { signal } = (controller.current = new AbortController())
    const response = await send('GET', `api/tasks/${encodeURIComponent(taskId)}/files/${hostId}`, { signal })
    save(await response.blob(), nameOf(fetch ?? { path: '', kind: 'FILE' }, hostname))
  }

  return (
    <button
      type="button"
      class="save"
      aria-label={`Save the file of ${hostname}`}
      disabled={isBusy}
      onClick={() => {
        setBusy(true)
        onFault('')
        load()
          .catch((error: unknown) => {
            if (controller.current?.signal.aborted !== true) onFault(errorText(error))
          })
          .finally(() => setBusy(false))
      }}
    >
      {isBusy ? 'Saving …' : 'Save'}
    </button>
  )
}

interface HostCarriedProps {
  task: TaskSummary
  result: TaskResult
  /** Transferred bytes of its file; undefined before the first. */
  bytes: number | undefined
}

export function HostCarried({ task: { copy, stdin }, result, bytes }: HostCarriedProps) {
  const total = copy?.file.size ?? stdin?.size
  if (result.status !== 'RUNNING' || bytes === undefined) return null
  // After the upload of stdin, the script itself is running.
  if (stdin !== null && bytes >= stdin.size) return null
  return (
    <span class="carried">
      {total !== undefined && <progress value={bytes} max={Math.max(total, 1)} aria-hidden="true" />}
      <small>{total === undefined ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(total)}`}</small>
    </span>
  )
}
