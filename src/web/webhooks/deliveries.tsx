import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Delivery } from '../../core/protocol/http/webhooks.ts'
import { Badge, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { countsText } from '../tasks/task-words.ts'

const textOf = (value: Delivery['data'][string] | undefined) => (typeof value === 'string' ? value : null)

const isCounts = (value: Delivery['data'][string] | undefined): value is Record<string, number> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Lower-cases a constant of the API; leaves sentences unchanged. */
const whyText = (why: string) => sanitizeLine(/^[A-Z_]+$/.test(why) ? why.toLowerCase() : why)

/** Subject of an event, with a link if the console has a page for it. */
function About({ data }: Pick<Delivery, 'data'>) {
  const [taskId, script, name, nodes] = [data.taskId, data.script, data.name, data.nodes].map(textOf)
  if (taskId)
    return (
      <>
        <a href={hrefOf('tasks', taskId)}>{script ?? `task ${taskId}`}</a>
        {isCounts(data.counts) && <small class="under">{countsText(data.counts)}</small>}
      </>
    )
  if (typeof data.scheduleId === 'number')
    return (
      <>
        <a href={hrefOf('schedules', `${data.scheduleId}`)}>{name}</a>
        <small class="under">{whyText(textOf(data.why) ?? '')}</small>
      </>
    )
  if (nodes)
    return (
      <>
        <LongName text={nodes} />
        {typeof data.count === 'number' && <small class="under">{counted(data.count, 'host')}</small>}
      </>
    )
  return <LongName text={textOf(data.hostname) ?? JSON.stringify(data)} />
}

function Ended({ delivery: { nextAt, endedAt, lastStatus, lastError } }: { delivery: Delivery }) {
  const outcome = lastError ?? (lastStatus === null ? '' : `answered ${lastStatus}`)
  return (
    <>
      {endedAt !== null && <Time at={endedAt} />}
      {endedAt === null && nextAt !== null && (
        <>
          {'again at '}
          <Time at={nextAt} />
        </>
      )}
      {endedAt === null && nextAt === null && 'pending'}
      {outcome !== '' && <small class="under">{sanitizeLine(outcome)}</small>}
    </>
  )
}

export function Deliveries({ deliveries }: { deliveries: readonly Delivery[] }) {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th class="w-event">Event</th>
          <th>About</th>
          <th class="w-badge">Status</th>
          <th class="w-tries">Tries</th>
          <th class="w-ended">Outcome</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <tr key={delivery.id}>
            <td class="whole-line">
              {delivery.event}
              <small class="under">
                <Time at={delivery.at} />
              </small>
            </td>
            <td class="whole-line">
              <About data={delivery.data} />
            </td>
            <td>
              <Badge state={delivery.status} />
            </td>
            <td data-label="Tries">{delivery.tries}</td>
            <td class="whole-line">
              <Ended delivery={delivery} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
