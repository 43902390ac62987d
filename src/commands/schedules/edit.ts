import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refuseEmpty } from '../../cli/command/failure.ts'
import { readScheduledCopy, readScheduledStdin, scheduledCopyFlags } from '../../cli/files/scheduled-copy.ts'
import { given, ifGiven, needed } from '../../cli/flags/checks.ts'
import { parseRate } from '../../cli/flags/copy.ts'
import { gateFlags, readExecutionOptions } from '../../cli/flags/run.ts'
import {
  readScheduledScript,
  readTiming,
  refuseTwoScripts,
  scheduledRunFlags,
  scheduledScriptFlags,
  splitCommand,
  timingFlags,
} from '../../cli/flags/schedule.ts'
import { readTarget, targetFlags } from '../../cli/flags/targets.ts'
import { stdinReader } from '../../cli/input/stdin.ts'
import { findSchedule } from '../../cli/names/names.ts'
import { findGates, readGates } from '../../cli/task/gates.ts'
import { nextOf, oftenNote } from '../../cli/views/schedules.ts'
import type { SchedulePatch } from '../../core/protocol/http/schedules.ts'

export default class SchedulesEdit extends BaseCommand {
  static override summary = 'Change the times, the script or the hosts of a schedule'
  static override usage = 'schedules edit SCHEDULE [OPTIONS] [-- COMMAND...]'
  static override description =
    'New times count from now. A user who changes more than the name and the times becomes the owner; secret params ' +
    'of another owner are then dropped.'
  static override examples = [
    "$ rsm schedules edit nightly --cron '0 4 * * *'",
    '$ rsm schedules edit nightly --script ./backup.sh',
  ]
  static override args = { schedule: needed('name of the schedule') }
  static override flags = {
    name: string({ description: 'new name' }),
    ...timingFlags,
    ...targetFlags,
    ...scheduledScriptFlags,
    ...scheduledCopyFlags,
    ...scheduledRunFlags,
    ...gateFlags,
  }

  async run() {
    const { options: argv, command } = splitCommand(this.argv)
    const { args, flags } = await this.parse(SchedulesEdit, argv)
    refuseTwoScripts(flags.script, command)
    const timing = readTiming(flags)
    const isAimed = flags.all || [flags.hosts, flags.cluster, flags.tag, flags.exclude].some((one) => one)
    const stdin = stdinReader()
    const copy = await readScheduledCopy(this, () => this.client(), { ...flags, command }, stdin)
    const input = await readScheduledStdin(this, flags.stdin, stdin)
    const limitRate = ifGiven(flags['limit-rate'], parseRate)
    const target = isAimed ? await readTarget(flags, () => stdin('the names of -w -')) : undefined
    const meant = await readGates(flags, (text) => this.notice(text))
    const options = await readExecutionOptions(flags)
    const said: SchedulePatch = { ...given({ name: flags.name, limitRate }), ...timing, ...options }
    refuseEmpty(
      {
        ...said,
        ...given({
          script: flags.script ?? flags.copy ?? command,
          stdin: flags.stdin,
          verify: flags.verify,
          rollback: flags.rollback,
          target,
        }),
      },
      'schedules edit',
    )
    const client = await this.client()
    const { id } = await findSchedule(client, args.schedule)
    const schedule = await client.schedules.update(id, {
      ...said,
      ...(copy
        ? await copy()
        : await readScheduledScript(client, { ...flags, command }, (text) => this.notice(text))),
      ...(await input?.(client)),
      ...(await findGates(client, meant)).options,
      ...given({ target }),
    })
    const often = flags.every === undefined ? null : oftenNote(schedule.everySeconds)
    if (often !== null) this.notice(often)
    this.done(`changed ${schedule.name}, next: ${nextOf(schedule, flags.utc)}`)
    return schedule
  }
}
