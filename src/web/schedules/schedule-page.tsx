import { useState } from 'preact/hooks'
import { restOf } from '../../cli/views/schedules.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { File } from '../../core/protocol/http/files.ts'
import type { Schedule, ScheduleSlot, ScheduleTimes } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { durationText } from '../../core/text/duration.ts'
import { all, call, errorText, usePolled } from '../api.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Facts, Fault, LongName, Time } from '../parts/shown.tsx'
import { go } from '../route.ts'
import { useScripts, useTexts } from '../run/scripts.tsx'
import { PlanNow, ScheduleActions } from './schedule-actions.tsx'
import { type Changed, ScheduleForm } from './schedule-form.tsx'
import {
  actionText,
  History,
  keptFile,
  keptFileText,
  SlotTimes,
  targetText,
  useRuns,
  When,
} from './schedule-parts.tsx'

/** Slots that servers keep in a history. */
const mostSlots = 100

interface View {
  schedule: Schedule
  /** File that it copies, or stdin of its script, if known. */
  file: File | undefined
  next: readonly string[]
  slots: readonly ScheduleSlot[]
  tasks: readonly TaskSummary[]
}

async function readView(id: string): Promise<View> {
  const path = `api/schedules/${encodeURIComponent(id)}`
  const [schedule, { next }, history, tasks] = await Promise.all([
    call<Schedule>('GET', path),
    call<ScheduleTimes>('GET', `${path}/next`),
    call<Page<ScheduleSlot>>('GET', `${path}/history?size=${mostSlots}`),
    all<TaskSummary>('api/tasks', { scheduleId: id }, mostSlots),
  ])
  return { schedule, file: await keptFile(schedule), next, slots: history.content, tasks }
}

const overlaps: Record<Schedule['overlap'], string> = {
  SKIP: 'skip the slot while its last task runs',
  QUEUE: 'queue one slot while its last task runs',
  ALLOW: 'run while its last task runs',
}

function missedText({ missed, missedWithinSeconds }: Schedule): string {
  return missed === 'SKIP' ? 'skip' : `once: run the latest within ${durationText(missedWithinSeconds)}`
}

interface ScheduleFactsProps extends Pick<View, 'schedule' | 'file'> {
  what: string
}

function ScheduleFacts({ schedule, file, what }: ScheduleFactsProps) {
  const { copy, stdin, jitterSeconds, from, until, overlap, owner, createdAt } = schedule
  return (
    <Facts
      rows={[
        ['Runs', <LongName text={what} />],
        ['File', copy && keptFileText(file)],
        ['Stdin', stdin ? keptFileText(file) : null],
        ['On', <LongName text={targetText(schedule)} />],
        ['When', <When schedule={schedule} />],
        ['Not before', from && <Time at={from} />],
        ['Not after', until && <Time at={until} />],
        ['Jitter', jitterSeconds === 0 ? null : `up to ${durationText(jitterSeconds)}`],
        ['Overlap', overlaps[overlap]],
        ['Missed', missedText(schedule)],
        ['Owner', owner],
        ['Created', <Time at={createdAt} />],
      ]}
    />
  )
}

function Panel({
  view: { schedule, file, next },
  scripts,
}: {
  view: View
  scripts: readonly ScriptSummary[]
}) {
  const [isPlanOpen, setPlanOpen] = useState(false)
  return (
    <div class="panel two">
      <ScheduleFacts schedule={schedule} file={file} what={actionText(schedule, scripts)} />
      <div>
        {next.length === 0 ? (
          <p class="hint">It has no further times.</p>
        ) : (
          <SlotTimes
            title={restOf(schedule) === null ? 'Next' : 'Next, once it is resumed'}
            zone={schedule.timezone}
            times={next}
          />
        )}
      </div>
      <details class="whole" onToggle={(event) => setPlanOpen(event.currentTarget.open)}>
        <summary>What it would run now, where and how</summary>
        {isPlanOpen && <PlanNow schedule={schedule} scripts={scripts} />}
      </details>
    </div>
  )
}

export function SchedulePage({ id }: { id: string }) {
  const { value: view, fault, again } = usePolled(() => readView(id), [id])
  const [refused, setRefused] = useState('')
  const [changed, setChanged] = useState<Changed | undefined>()
  const refuse = (error: unknown) => setRefused(errorText(error))
  const listed = useScripts(refuse)
  const { scriptId, verify, rollback } = view?.schedule ?? {}
  const own = [scriptId, verify?.scriptId, rollback?.scriptId]
  const scripts = useTexts(listed ?? [], own, refuse)
  const isRead = scripts.every(({ id, content }) => content !== undefined || !own.includes(id))
  useTitle(view?.schedule.name ?? 'Schedule')
  useRuns(Number(id), again)
  if (view === undefined || listed === undefined || !isRead)
    return (
      <section class="page">
        <h1>Schedule</h1>
        {fault + refused === '' ? <p class="hint">Loading …</p> : <Fault text={fault || refused} />}
      </section>
    )
  const { schedule, file, next, slots, tasks } = view
  const rest = restOf(schedule)

  const edit = () => setChanged({ schedule, next, file })
  if (changed)
    return (
      <section class="page">
        <div class="heading">
          <h1>{`Change ‘${changed.schedule.name}’`}</h1>
        </div>
        <ScheduleForm
          scripts={scripts}
          changed={changed}
          onCancel={() => setChanged(undefined)}
          onSaved={() => {
            again()
            setChanged(undefined)
          }}
        />
      </section>
    )
  return (
    <section class="page">
      <div class="heading">
        <h1>{schedule.name}</h1>
        {rest !== null && <Badge state={rest} />}
        <span class="spring" />
        <div class="doings">
          <ScheduleActions
            schedule={schedule}
            scripts={scripts}
            onFault={setRefused}
            onChanged={again}
            onEdit={edit}
          />
        </div>
      </div>
      {schedule.suspended !== null && <p class="fault">{`Suspended: ${schedule.suspended}`}</p>}
      <Fault text={refused || fault} />
      <Panel view={view} scripts={scripts} />
      <div class="heading">
        <h2>History</h2>
      </div>
      {slots.length === 0 ? (
        <p class="empty">It has not run yet.</p>
      ) : (
        <History slots={slots} tasks={tasks} />
      )}
    </section>
  )
}

export function NewSchedulePage() {
  useTitle('New schedule')
  const [fault, setFault] = useState('')
  const scripts = useScripts((error) => setFault(errorText(error)))
  return (
    <section class="page">
      <div class="heading">
        <h1>New schedule</h1>
      </div>
      <Fault text={fault} />
      {scripts && (
        <ScheduleForm
          scripts={scripts}
          onSaved={({ id }) => go('schedules', `${id}`)}
          onCancel={() => go('schedules')}
        />
      )}
    </section>
  )
}
