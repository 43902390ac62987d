import { timeIn } from '../../cli/schedules/view.ts'
import { showTime } from '../../cli/text/time.ts'
import { zoneOf } from '../../core/schedules/zone.ts'

interface SlotTimesProps {
  title: string
  zone: string
  times: readonly string[]
}

/** Times as clocks in a zone show them, and those here where they differ. */
export function SlotTimes({ title, zone, times }: SlotTimesProps) {
  // A server may know zones that this browser does not.
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
