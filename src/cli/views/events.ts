import type { FleetEvent } from '../../client/services/events.ts'
import type { ResetEvent } from '../../core/protocol/http/events.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { standingOf } from '../hosts/standing.ts'
import { countsText } from '../task/task-state.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showDuration, showTime } from '../text/time.ts'

const bracketed = (text: string | null) => (text === null ? '' : ` (${text})`)

/** Progress of a running task, or the result of an ended one. */
function taskState(task: TaskSummary): string {
  const took = task.status === 'RUNNING' ? '' : ` in ${showDuration(task.duration)}`
  return `${task.status}${took}: ${countsText(task.counts)}`
}

type Change = Exclude<FleetEvent, { type: 'ready' | 'reset' }>

function parts(event: Change): readonly [subject: string, state: string] {
  switch (event.type) {
    case 'host': {
      if (event.change === 'removed') return [`host ${event.host.id}`, '']
      return [`host ${event.host.hostname}`, ` ${standingOf(event.host)}`]
    }
    case 'task':
      return [`task ${event.task.taskId}${bracketed(event.task.scriptName)}`, ` ${taskState(event.task)}`]
    case 'cluster':
      if (event.change === 'removed') return [`cluster ${event.cluster.id}`, '']
      return [`cluster ${event.cluster.name}`, ` ${counted(event.cluster.hostCount, 'host')}`]
  }
}

const changes = { created: ' created,', updated: '', removed: ' removed' } as const

export function eventLine(event: Change, utc: boolean): string {
  const [subject, state] = parts(event)
  return `${showTime(event.at, utc)} ${sanitizeLine(subject + changes[event.change] + state)}`
}

const resets: Record<ResetEvent['reason'], string> = {
  RESTARTED: 'the server was restarted',
  BEHIND: 'too many events since then',
  UNKNOWN: 'the server does not know the last event',
}

export function resetLine({ reason }: ResetEvent): string {
  return `events may be missing: ${resets[reason]}`
}
