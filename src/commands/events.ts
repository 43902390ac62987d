import { string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { listed } from '../cli/flags/checks.ts'
import { sinkOf } from '../cli/output/format.ts'
import { jsonText } from '../cli/text/sanitize.ts'
import { eventLine, resetLine } from '../cli/views/events.ts'
import { watchEvents } from '../client/services/events.ts'
import type { RsmError } from '../core/errors.ts'
import { type EventType, eventTypes } from '../core/protocol/http/events.ts'

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
