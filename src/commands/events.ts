import { string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { listed } from '../cli/flags/checks.ts'
import { standingOf } from '../cli/hosts/standing.ts'
import { sinkOf } from '../cli/output/format.ts'
import { countsText } from '../cli/task/task-state.ts'
import { counted } from '../cli/text/amounts.ts'
import { jsonText, sanitizeLine } from '../cli/text/sanitize.ts'
import { showDuration, showTime } from '../cli/text/time.ts'
import { type FleetEvent, watchEvents } from '../client/watch.ts'
import type { RsmError } from '../core/errors.ts'
import { type EventType, eventTypes, type ResetEvent } from '../core/protocol/http/events.ts'
import type { TaskSummary } from '../core/protocol/http/tasks.ts'

export default class Events extends BaseCommand {
  static override summary = 'Follow changes of hosts, tasks and clusters until Ctrl-C'
  static override description =
    'With --json, one line of JSON per event; --after resumes after its "id". "reset" means that the events in ' +
    'between are no longer available.'
  static override examples = [
    '$ rsm events',
    '$ rsm events --type host,cluster',
    '$ rsm events --json | jq .',
  ]
  static override flags = {
    type: string({
      options: eventTypes,
      ...listed,
      description: 'only changes of this kind',
    }),
    after: string({ helpValue: 'ID', description: 'resume after this event' }),
  }

  async run() {
    const { flags } = await this.parse(Events)
    const client = await this.client()
    const stdout = sinkOf(process.stdout)
    const events = watchEvents(client.api, {
      after: flags.after,
      ...(flags.type === undefined ? {} : { types: flags.type as EventType[] }),
      onCut: (error: RsmError, again: boolean) => {
        if (!again) this.notice(`${error.message}; trying again for 5 minutes`)
      },
    })
    for await (const event of events) {
      if (flags.json) await stdout.write(`${jsonText(event)}\n`)
      else if (event.type === 'reset') this.notice(resetLine(event))
      else if (event.type !== 'ready') await stdout.write(`${eventLine(event, flags.utc)}\n`)
    }
  }
}

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

function eventLine(event: Change, utc: boolean): string {
  const [subject, state] = parts(event)
  return `${showTime(event.at, utc)} ${sanitizeLine(subject + changes[event.change] + state)}`
}

const resets: Record<ResetEvent['reason'], string> = {
  RESTARTED: 'the server was restarted',
  BEHIND: 'too many events since then',
  UNKNOWN: 'the server does not know the last event',
}

function resetLine({ reason }: ResetEvent): string {
  return `events may be missing: ${resets[reason]}`
}
