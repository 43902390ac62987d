import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'
import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'

export default class SchedulesRun extends BaseCommand {
  static override summary = 'Run a schedule now, with your own rights'
  static override description =
    'Does not affect its slots. Prints the task id and does not wait. Requires ADMIN if it has secrets of another user.'
  static override examples = ['$ rsm schedules run nightly']
  static override args = { schedule: needed('name of the schedule') }

  async run() {
    const { args } = await this.parse(SchedulesRun)
    const client = await this.client()
    const { id, name } = await findSchedule(client, args.schedule)
    const started = await client.schedules.run(id)
    this.print(sanitizeLine(started.taskId))
    this.hint(`started ${name} on ${counted(started.hostCount, 'host')}; next: rsm logs -f ${started.taskId}`)
    return started
  }
}
