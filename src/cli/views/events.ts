import type { FleetEvent } from '../../client/services/events.ts'
import type { ResetEvent } from '../../core/protocol/http/events.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { standingOf } from '../hosts/standing.ts'
import { countsText } from '../task/task-state.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showDuration, showTime } from '../text/time.ts'

const bracketed = (text: string | null) => (text === null ? '' : ` (${text})`)

/** Of a task that runs, how far it is; of one that has ended, how. */
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
  BEHIND: 'too much has happened since',
  UNKNOWN: 'the server does not know this place',
}

export function resetLine({ reason }: ResetEvent): string {
  return `what was missed is not known: ${resets[reason]}`
}
