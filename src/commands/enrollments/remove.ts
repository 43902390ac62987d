import { string } from '@oclif/core/args'
import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { confirmRemoval } from '../../ui/input/prompt.ts'
import { findEnrollment } from '../../ui/names/names.ts'

export default class EnrollmentsRemove extends BaseCommand {
  static override summary = 'Remove an enrolment token; the hosts that it enrolled stay'
  static override examples = ['$ rsm enrollments remove 3 --yes']
  static override args = {
    enrollment: string({ required: true, ignoreStdin: true, description: 'id of the token, or its name' }),
  }
  static override flags = { yes: boolean({ char: 'y', description: 'do not ask' }) }

  async run() {
    const { args, flags } = await this.parse(EnrollmentsRemove)
    this.globals = flags
    const client = await this.client()
    const { id } = await findEnrollment(client, args.enrollment)
    await confirmRemoval(`enrolment token ${id}`, flags.yes)
    const removed = await client.enrollments.remove(id)
    this.done(`removed enrolment token ${id}`)
    return removed
  }
}
