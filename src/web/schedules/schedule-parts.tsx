import { useEffect } from 'preact/hooks'
import { counted, showBytes } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showDuration, showTime } from '../../cli/text/time.ts'
import { actionOf, type Timed, targetOf, timeIn, timingOf } from '../../cli/views/schedules.ts'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import type { File } from '../../core/protocol/http/files.ts'
import type { Schedule, ScheduleSlot, ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { zoneOf } from '../../core/schedules/cron.ts'
import { call, followStream } from '../api.ts'
import { Badge, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { allowed, session } from '../session.ts'
import { countsText } from '../tasks/task-words.ts'

/** Timing of a schedule: a cron expression with its zone, an interval, or a time. */
export function When({ schedule }: { schedule: Timed }) {
  const { cron, at, timezone } = schedule
  if (at !== null)
    return (
      <>
        {'at '}
        <Time at={at} />
      </>
    )
  if (cron === null) return timingOf(schedule, false)
  return (
    <>
      <span class="code">{cron}</span>
      <small class="under">
        <LongName text={timezone} />
      </small>
    </>
  )
}

interface SlotTimesProps {
  title: string
  zone: string
  times: readonly string[]
}

/** Times in a zone, and in local time if that differs. */
export function SlotTimes({ title, zone, times }: SlotTimesProps) {
  // The server may know zones that this browser does not.
  const known = zoneOf(zone) === null ? 'UTC' : zone
  const rows = times.map((time) => [time, timeIn(known, time), showTime(time, false)] as const)
  const isElsewhere = rows.some(([, there, here]) => there.slice(0, 19) !== here.slice(0, 19))
  return (
    <table class="slot-times">
      <caption>{title}</caption>
      <thead>
        <tr>
          <th>{known}</th>
          {isElsewhere && <th>Here</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(([time, there, here]) => (
          <tr key={time}>
            <td>
              <time dateTime={time}>{there}</time>
            </td>
            {isElsewhere && <td>{here}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** File that a schedule copies, or stdin of its script; undefined without one, and for other users' files. */
export async function keptFile({ copy, stdin, owner }: Schedule): Promise<File | undefined> {
  const fileId = copy?.fileId ?? stdin?.fileId
  if (fileId === undefined || !allowed('execute') || session.get()?.user.username !== owner) return undefined
  return call<File>('GET', `api/files/${encodeURIComponent(fileId)}`).catch(() => undefined)
}

/** `12.3 kB, SHA-256 0123456789ab…` */
export function keptFileText(file: File | undefined): string {
  if (file?.size == null || file.sha256 === null) return 'A file on the server'
  return `${showBytes(file.size)}, SHA-256 ${file.sha256.slice(0, 12)}…`
}

export function actionText(schedule: ScheduleSummary, scripts: readonly ScriptSummary[] = []): string {
  return scripts.find(({ id }) => id === schedule.scriptId)?.name ?? actionOf(schedule)
}

export function targetText(schedule: Pick<ScheduleSummary, 'target'>): string {
  const { hostIds } = schedule.target
  return hostIds === undefined ? targetOf(schedule) : counted(hostIds.length, 'host')
}

/** Milliseconds between two reads while tasks change. */
const readPause = 1_000

interface HistoryProps {
  slots: readonly ScheduleSlot[]
  /** Tasks of these slots that are still kept. */
  tasks: readonly TaskSummary[]
}

export function History({ slots, tasks }: HistoryProps) {
  const byId = new Map(tasks.map((task) => [task.taskId, task]))
  return (
    <table class="rows history">
      <thead>
        <tr>
          <th class="w-slot">Slot</th>
          <th>Outcome</th>
          <th class="w-counts">Hosts</th>
          <th class="w-took">Took</th>
        </tr>
      </thead>
      <tbody>
        {slots.map((slot) => {
          const task = slot.taskId === null ? undefined : byId.get(slot.taskId)
          const note = slotText(slot)
          return (
            <tr key={`${slot.plannedAt} ${slot.taskId}`}>
              <td class="whole-line">
                {task ? (
                  <a class="name" href={hrefOf('tasks', task.taskId)}>
                    <Time at={slot.plannedAt} />
                  </a>
                ) : (
                  <Time at={slot.plannedAt} />
                )}
                {note !== null && <small class="under">{note}</small>}
              </td>
              <td>
                <Outcome slot={slot} task={task} />
              </td>
              <td>{task && countsText(task.counts)}</td>
              <td>{task && task.duration !== null && showDuration(task.duration)}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function Outcome({ slot, task }: { slot: ScheduleSlot; task: TaskSummary | undefined }) {
  const { outcome, why, error } = slot
  return (
    <>
      <Badge state={task?.status ?? outcome} />
      {why !== null && <small>{`: ${why.toLowerCase()}`}</small>}
      {outcome === 'STARTED' && !task && <small> its task is no longer kept</small>}
      {error !== null && <small class="under">{sanitizeLine(error)}</small>}
    </>
  )
}

/** Note of a slot: number of slots that it stands for, or the user who ran it. */
function slotText({ by, count, firstAt }: ScheduleSlot) {
  if (by !== null) return `run now, by ${by}`
  if (count === 1) return null
  return (
    <>
      {`the last of ${count === null ? 'many slots' : counted(count, 'slot')} since `}
      <Time at={firstAt} />
    </>
  )
}

/** Calls `again` when a task of this schedule, or of any, starts, changes or ends. */
export function useRuns(scheduleId: number | undefined, again: () => void): void {
  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        again()
      }, readPause)
    }
    followStream('api/events?type=task', {
      signal: controller.signal,
      onEvent({ event, data }) {
        const of = event === 'task' ? (JSON.parse(data) as TaskEvent).task.scheduleId : undefined
        if (of != null && (scheduleId === undefined || of === scheduleId)) soon()
      },
      // The regular polls report errors.
    }).catch(() => undefined)
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [scheduleId])
}
