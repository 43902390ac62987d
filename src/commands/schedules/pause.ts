import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'

export default class SchedulesPause extends BaseCommand {
  static override summary = 'Pause a schedule until it is resumed; its running tasks continue'
  static override examples = ['$ rsm schedules pause nightly']
  static override args = { schedule: needed('name of the schedule') }

  async run() {
    const { args } = await this.parse(SchedulesPause)
    const client = await this.client()
    const { id } = await findSchedule(client, args.schedule)
    const schedule = await client.schedules.update(id, { enabled: false })
    this.done(`paused ${schedule.name}`)
    return schedule
  }
}
