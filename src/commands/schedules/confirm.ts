import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'

export default class SchedulesConfirm extends BaseCommand {
  static override summary = 'Confirm the changed scripts of a schedule with secrets'
  static override description =
    'Requires the owner or an ADMIN. If another user changes a stored script, runs with secrets fail until it is confirmed. ' +
    'Review the change first: rsm scripts versions.'
  static override examples = ['$ rsm schedules confirm nightly']
  static override args = { schedule: needed('name of the schedule') }

  async run() {
    const { args } = await this.parse(SchedulesConfirm)
    const client = await this.client()
    const { id } = await findSchedule(client, args.schedule)
    const schedule = await client.schedules.update(id, { confirmed: true })
    const { name, scriptId, verify, rollback } = schedule
    const ids = [scriptId, verify?.scriptId, rollback?.scriptId].filter((one) => typeof one === 'number')
    const scripts = await Promise.all([...new Set(ids)].map((one) => client.scripts.get(one)))
    const texts = scripts.map((script) => `${script.name} version ${script.version}`)
    this.done([`confirmed ${name}`, ...texts].join(', '))
    return schedule
  }
}
