import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { toneOf } from '../parts/shown.tsx'
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
