import { useEffect } from 'preact/hooks'
import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import type { ScheduleSlot } from '../../core/protocol/http/schedules.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { followStream } from '../api.ts'
import { Badge, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { countsText } from '../tasks/task-words.ts'

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
