import { useEffect, useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { Started, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { call, errorText } from '../api.ts'
import { Fault, Question } from '../parts/shown.tsx'
import { go } from '../route.ts'
import { PlanPreview } from '../run/plan-preview.tsx'
import { targetHosts } from '../run/target-field.tsx'
import { allowed, session } from '../session.ts'

interface ScheduleActionsProps {
  schedule: Schedule
  scripts: readonly ScriptSummary[]
  onFault: (fault: string) => void
  onChanged: () => void
  onEdit: () => void
}

export function ScheduleActions({ schedule, scripts, onFault, onChanged, onEdit }: ScheduleActionsProps) {
  const [asked, setAsked] = useState<'run' | 'resume' | 'delete' | undefined>()
  const path = `api/schedules/${schedule.id}`
  const { name, enabled, suspended } = schedule
  const isResting = !enabled || suspended !== null
  function act<T>(work: Promise<T>, then: (answer: T) => void): void {
    setAsked(undefined)
    onFault('')
    work.then(then, (error: unknown) => onFault(errorText(error)))
  }
  const enable = (isOn: boolean) => act(call('PATCH', path, { body: { enabled: isOn } }), onChanged)
  return (
    <>
      {allowed('execute') && (
        <button type="button" onClick={() => setAsked('run')}>
          Run now
        </button>
      )}
      {mayChange(schedule) && (
        <>
          {isResting ? (
            <button type="button" onClick={() => (suspended === null ? enable(true) : setAsked('resume'))}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => enable(false)}>
              Pause
            </button>
          )}
          <button type="button" onClick={onEdit}>
            Edit
          </button>
          <button type="button" class="danger" onClick={() => setAsked('delete')}>
            Delete
          </button>
        </>
      )}
      {asked === 'run' && (
        <Question
          title={`Run ‘${name}’ now?`}
          yes="Run it now"
          no="Don’t run"
          onNo={() => setAsked(undefined)}
          onYes={() => act(call<Started>('POST', `${path}/run`), ({ taskId }) => go('tasks', taskId))}
        >
          <PlanNow schedule={schedule} scripts={scripts} />
        </Question>
      )}
      {asked === 'resume' && (
        <ResumeQuestion schedule={schedule} onYes={() => enable(true)} onNo={() => setAsked(undefined)} />
      )}
      {asked === 'delete' && (
        <Question
          title={`Delete the schedule ‘${name}’?`}
          yes="Delete it"
          no="Keep it"
          isDangerous
          onNo={() => setAsked(undefined)}
          onYes={() => act(call('DELETE', path), () => go('schedules'))}
        >
          <p>Its history is deleted too. Its tasks stay.</p>
        </Question>
      )}
    </>
  )
}

const mayChange = ({ owner }: Schedule) =>
  allowed('administer') || (allowed('execute') && session.get()?.user.username === owner)

function ResumeQuestion({
  schedule,
  onYes,
  onNo,
}: {
  schedule: Schedule
  onYes: () => void
  onNo: () => void
}) {
  const { name, suspended, owner, secretParams } = schedule
  const isOwn = session.get()?.user.username === owner
  return (
    <Question title={`Resume ‘${name}’?`} yes="Resume it" no="Leave it suspended" onYes={onYes} onNo={onNo}>
      <p>{`It is suspended: ${suspended ?? ''}.`}</p>
      <p>You become its owner, and it runs with your rights.</p>
      {!isOwn && secretParams.length > 0 && (
        <p>{`Its secret params are dropped: enter ${secretParams.join(', ')} again with Edit.`}</p>
      )}
    </Question>
  )
}

/** Hosts, order and scripts of a run that would start now. */
export function PlanNow({ schedule, scripts }: { schedule: Schedule; scripts: readonly ScriptSummary[] }) {
  const [hosts, setHosts] = useState<readonly Host[] | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => {
    let isLeft = false
    targetHosts(schedule.target).then(
      (found) => !isLeft && setHosts(found),
      (error: unknown) => !isLeft && setFault(errorText(error)),
    )
    return () => {
      isLeft = true
    }
  }, [schedule.updatedAt])
  if (hosts === undefined) return fault === '' ? <p class="hint">Looking …</p> : <Fault text={fault} />
  return <PlanPreview body={taskOf(schedule)} hosts={hosts} scripts={scripts} />
}

/** The task that a schedule would start; secret params without values. */
function taskOf({ scriptId, script, copy, secretParams, ...options }: Schedule): TaskCreate {
  return {
    ...options,
    ...(scriptId !== null && { scriptId }),
    ...(script !== null && { script }),
    ...(copy !== null && { copy }),
    secretParams: Object.fromEntries(secretParams.map((name) => [name, ''])),
  }
}
