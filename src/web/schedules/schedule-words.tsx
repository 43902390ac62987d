import { counted, showBytes } from '../../cli/text/amounts.ts'
import { showTime } from '../../cli/text/time.ts'
import { actionOf, type Timed, targetOf, timeIn, timingOf } from '../../cli/views/schedules.ts'
import type { File } from '../../core/protocol/http/files.ts'
import type { Schedule, ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { zoneOf } from '../../core/schedules/zone.ts'
import { call } from '../api.ts'
import { LongName, Time } from '../parts/shown.tsx'
import { allowed, session } from '../session.ts'

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
