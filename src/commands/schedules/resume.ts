import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'
import { nextOf } from '../../cli/views/schedules.ts'

export default class SchedulesResume extends BaseCommand {
  static override summary = 'Let a schedule that was paused or suspended run again'
  static override description =
    'Missed slots do not run. If it was suspended, you become its owner, and secret params of another owner are dropped.'
  static override examples = ['$ rsm schedules resume nightly']
  static override args = { schedule: needed('name of the schedule') }

  async run() {
    const { args, flags } = await this.parse(SchedulesResume)
    const client = await this.client()
    const previous = await findSchedule(client, args.schedule)
    const schedule = await client.schedules.update(previous.id, { enabled: true })
    this.done(`resumed ${schedule.name}, next: ${nextOf(schedule, flags.utc)}`)
    const dropped = previous.secretParams.filter((name) => !schedule.secretParams.includes(name))
    if (dropped.length > 0)
      this.notice(
        `${previous.owner}'s secret params are dropped: give ${dropped.join(' and ')} again with rsm schedules edit`,
      )
    return schedule
  }
}
