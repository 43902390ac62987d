import { type Timed, timingOf } from '../../cli/schedules/view.ts'
import { LongName } from '../parts/long-name.tsx'
import { Time } from '../parts/time.tsx'

/** When a schedule runs: a cron expression with its zone, an interval, or a time. */
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
