import { useState } from 'preact/hooks'
import { restOf } from '../../cli/views/schedules.ts'
import type { ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { all, usePolled } from '../api.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Fault, LongName, Time } from '../parts/shown.tsx'
import { go, hrefOf } from '../route.ts'
import { useScripts } from '../run/scripts.tsx'
import { allowed } from '../session.ts'
import { actionText, targetText, useRuns, When } from './schedule-parts.tsx'

const rowsStep = 100

function Next({ schedule }: { schedule: ScheduleSummary }) {
  const rest = restOf(schedule)
  return (
    <>
      {rest === null ? <Time at={schedule.nextAt} /> : <Badge state={rest} />}
      {schedule.suspended !== null && <small class="under">{schedule.suspended}</small>}
    </>
  )
}

function Last({ last }: { last: ScheduleSummary['lastTask'] }) {
  if (last === null) return '–'
  const badge = <Badge state={last.status} />
  return (
    <>
      {last.taskId === null ? badge : <a href={hrefOf('tasks', last.taskId)}>{badge}</a>}
      <small class="under">
        <Time at={last.at} />
      </small>
    </>
  )
}

function ScheduleRow({
  schedule,
  scripts,
}: {
  schedule: ScheduleSummary
  scripts: readonly ScriptSummary[] | undefined
}) {
  return (
    <tr>
      <td class="whole-line">
        <a class="name" href={hrefOf('schedules', `${schedule.id}`)}>
          <LongName text={schedule.name} />
        </a>
        <small class="under clip">{`${actionText(schedule, scripts)} on ${targetText(schedule)}`}</small>
      </td>
      <td class="whole-line">
        <When schedule={schedule} />
      </td>
      <td data-label="Next">
        <Next schedule={schedule} />
      </td>
      <td data-label="Last">
        <Last last={schedule.lastTask} />
      </td>
      <td class="clip" data-label="Owner" title={schedule.owner}>
        {schedule.owner}
      </td>
    </tr>
  )
}

export function SchedulesPage() {
  useTitle('Schedules')
  const [search, setSearch] = useState('')
  const [most, setMost] = useState(rowsStep)
  const scripts = useScripts()
  const read = () => all<ScheduleSummary>('api/schedules', { search }, most + 1)
  const { value: schedules, fault, again } = usePolled(read, [search, most])
  useRuns(undefined, again)
  return (
    <section class="page">
      <div class="heading">
        <h1>Schedules</h1>
        <span class="spring" />
        {allowed('execute') && (
          <button type="button" class="primary" onClick={() => go('schedules', 'new')}>
            New schedule
          </button>
        )}
      </div>
      <div class="bar" role="search">
        <input
          type="search"
          aria-label="Search schedules"
          placeholder="Search name   /"
          spellcheck={false}
          onInput={(event) => setSearch(event.currentTarget.value.trim())}
        />
      </div>
      <Fault text={fault} />
      {schedules?.length === 0 && fault === '' && (
        <p class="empty">{search === '' ? 'No schedules yet.' : 'No schedule matches.'}</p>
      )}
      {schedules !== undefined && schedules.length > 0 && (
        <table class="rows schedules">
          <thead>
            <tr>
              <th>Schedule</th>
              <th class="w-when">When</th>
              <th class="w-next">Next</th>
              <th class="w-time">Last</th>
              <th class="w-user">Owner</th>
            </tr>
          </thead>
          <tbody>
            {schedules.slice(0, most).map((schedule) => (
              <ScheduleRow key={schedule.id} schedule={schedule} scripts={scripts} />
            ))}
          </tbody>
        </table>
      )}
      {schedules !== undefined && schedules.length > most && (
        <p class="more">
          <button type="button" onClick={() => setMost((now) => now + rowsStep)}>
            Show more
          </button>
        </p>
      )}
    </section>
  )
}
