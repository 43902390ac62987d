import { BaseCommand } from '../../cli/command/base-command.ts'
import { integer, needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'
import { timeIn } from '../../cli/views/schedules.ts'

export default class SchedulesNext extends BaseCommand {
  static override summary = 'Show the next times of a schedule, in its time zone and yours'
  static override examples = ['$ rsm schedules next nightly', '$ rsm schedules next nightly -n 20']
  static override args = { schedule: needed('name of the schedule') }
  static override flags = {
    count: integer({
      char: 'n',
      min: 1,
      max: 100,
      default: 5,
      helpValue: 'N',
      description: 'number of runs to show',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(SchedulesNext)
    const client = await this.client()
    const { id, name, timezone, enabled, suspended } = await findSchedule(client, args.schedule)
    const times = await client.schedules.next(id, { count: flags.count })
    if (suspended !== null) this.notice(`${name} is suspended: ${suspended}`)
    else if (!enabled) this.notice(`${name} is paused: rsm schedules resume ${shellWord(name)}`)
    if (this.globals.json) return times
    if (times.next.length === 0) this.notice(`${name} has no further times`)
    else {
      const { renderTable } = await import('../../cli/text/table.ts')
      this.print(
        renderTable(times.next, [
          { heading: timezone, value: (time) => timeIn(timezone, time), essential: true },
          {
            heading: flags.utc ? 'UTC' : 'LOCAL',
            value: (time) => showTime(time, flags.utc),
            essential: true,
          },
        ]),
      )
    }
    return times
  }
}
