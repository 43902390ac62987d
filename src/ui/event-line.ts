import type { FleetEvent } from '../client/services/events.ts'
import type { Cluster } from '../core/protocol/http/clusters.ts'
import type { ResetEvent } from '../core/protocol/http/events.ts'
import type { Host } from '../core/protocol/http/hosts.ts'
import { resultStatuses, type TaskSummary } from '../core/protocol/http/tasks.ts'
import { sanitizeLine } from './text/sanitize.ts'
import { showDuration, showTime } from './text/time.ts'

const bracketed = (text: string | null) => (text === null ? '' : ` (${text})`)

function hostText({ hostname, status, statusReason }: Host): string {
  return `host ${hostname} ${status}${bracketed(statusReason)}`
}

/** Of a task that runs, how far it is; of one that has ended, how. */
function taskText(task: TaskSummary): string {
  const counts = resultStatuses
    .filter((status) => task.counts[status] > 0)
    .map((status) => `${task.counts[status]} ${status}`)
  const took = task.status === 'RUNNING' ? '' : ` in ${showDuration(task.duration)}`
  return `task ${task.taskId}${bracketed(task.scriptName)} ${task.status}${took}: ${counts.join(', ')}`
}

function clusterText({ name, hostCount }: Cluster): string {
  return `cluster ${name}: ${hostCount} ${hostCount === 1 ? 'host' : 'hosts'}`
}

function text(event: Exclude<FleetEvent, { type: 'ready' | 'reset' }>): string {
  switch (event.type) {
    case 'host':
      return event.change === 'removed' ? `host ${event.host.id}` : hostText(event.host)
    case 'task':
      return taskText(event.task)
    case 'cluster':
      return event.change === 'removed' ? `cluster ${event.cluster.id}` : clusterText(event.cluster)
  }
}

/** One line for people: when, what, how it stands. */
export function eventLine(event: Exclude<FleetEvent, { type: 'ready' | 'reset' }>, utc: boolean): string {
  const change = event.change === 'updated' ? '' : `, ${event.change}`
  return `${showTime(event.at, utc)} ${sanitizeLine(text(event))}${change}`
}

const resets: Record<ResetEvent['reason'], string> = {
  RESTARTED: 'the server was started anew',
  BEHIND: 'too much has happened since',
  UNKNOWN: 'the server does not know this place',
}

export function resetLine({ reason }: ResetEvent): string {
  return `what was missed is not known: ${resets[reason]}`
}
