import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given } from '../../cli/flags/checks.ts'
import { toneOf } from '../../cli/text/screen.ts'
import { nextOf, timingOf } from '../../cli/views/schedules.ts'
import { allPages } from '../../client/http/pages.ts'
import type { ScheduleQuery } from '../../core/protocol/http/schedules.ts'

export default class SchedulesList extends BaseCommand {
  static override summary = 'List schedules'
  static override examples = ['$ rsm schedules list']
  static override flags = {
    search: string({ helpValue: 'TEXT', description: 'only names that contain this text' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(SchedulesList)
    const client = await this.client()
    const query: ScheduleQuery = given({ search: flags.search })
    const page = await allPages((paging) => client.schedules.list(paging), query, flags.limit)
    return showList(this, page, {
      noun: 'schedules',
      filtered: Object.keys(query).length > 0,
      none: "no schedules: rsm schedules add NAME --cron '30 3 * * *' -g CLUSTER --script FILE",
      columns: [
        { heading: 'ID', value: (schedule) => schedule.id, essential: true },
        { heading: 'NAME', value: (schedule) => schedule.name, essential: true },
        { heading: 'WHEN', value: (schedule) => timingOf(schedule, flags.utc) },
        { heading: 'NEXT', value: (schedule) => nextOf(schedule, flags.utc), essential: true },
        {
          heading: 'LAST',
          value: ({ lastTask }) => lastTask?.status ?? '-',
          tone: ({ lastTask }) => (lastTask ? toneOf(lastTask.status) : undefined),
        },
        { heading: 'OWNER', value: (schedule) => schedule.owner, spare: true },
      ],
    })
  }
}
