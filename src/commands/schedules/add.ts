import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refusingTaken } from '../../cli/command/failure.ts'
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
import { findGates, readGates } from '../../cli/task/gates.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { nextOf, oftenNote } from '../../cli/views/schedules.ts'
import { RsmError } from '../../core/errors.ts'

export default class SchedulesAdd extends BaseCommand {
  static override summary = 'Run a script, or copy files, on a schedule'
  static override usage = 'schedules add NAME [OPTIONS] [-- COMMAND...]'
  static override description =
    'Targets and stored scripts are looked up at each run. A schedule runs with the rights that you have at that ' +
    'time. `rsm schedules show NAME` shows how its runs ended.'
  static override examples = [
    "$ rsm schedules add nightly --cron '30 3 * * 1-5' --tz Europe/Berlin -g db --script ./backup.sh --strategy rolling",
    "$ rsm schedules add deploy --cron '0 6 * * 1' -g web --script ./deploy.sh --verify ./check.sh --verify-retries 5",
    "$ rsm schedules add sweep --every 6h -a -- 'find /var/tmp/builds -mtime +7 -delete'",
    "$ rsm schedules add motd --cron '0 5 * * *' -a --copy ./motd --to /etc/motd --mode 0644",
    "$ rsm schedules add load --cron '0 4 * * *' -w db1 --stdin ./load.sql -- psql app",
    '$ rsm schedules add probe --every 5m --jitter 1m -a --script check -p LEVEL=full',
  ]
  static override args = { name: needed('name of the schedule') }
  static override flags = {
    ...timingFlags,
    paused: boolean({ helpGroup: 'WHEN', description: 'do not run it until `rsm schedules resume`' }),
    ...targetFlags,
    ...scheduledScriptFlags,
    ...scheduledCopyFlags,
    ...scheduledRunFlags,
    ...gateFlags,
  }

  async run() {
    const { options: argv, command } = splitCommand(this.argv)
    const { args, flags } = await this.parse(SchedulesAdd, argv)
    const timing = readTiming(flags)
    if ([timing.cron, timing.everySeconds, timing.at].every((one) => one === undefined))
      throw new RsmError('usage', 'no times given: add --cron, --every or --at', {
        hint: "for example: --cron '30 3 * * *'",
      })
    refuseTwoScripts(flags.script, command)
    if (flags.script === undefined && flags.copy === undefined && command === undefined)
      throw new RsmError('usage', 'nothing to run', {
        hint: '-- COMMAND, --script FILE, --script NAME of a stored one, or --copy FILE --to PATH',
      })
    const stdin = stdinReader()
    const copy = await readScheduledCopy(this, () => this.client(), { ...flags, command }, stdin)
    const input = await readScheduledStdin(this, flags.stdin, stdin)
    const limitRate = ifGiven(flags['limit-rate'], parseRate)
    const target = await readTarget(flags, () => stdin('the names of -w -'))
    const meant = await readGates(flags, (text) => this.notice(text))
    const options = await readExecutionOptions(flags)
    const client = await this.client()
    const { options: gates } = await findGates(client, meant)
    const what = copy
      ? await copy()
      : await readScheduledScript(client, { ...flags, command }, (text) => this.notice(text))
    const enabled = flags.paused ? { enabled: false } : {}
    const schedule = await refusingTaken(
      `schedule ${args.name}`,
      `rsm schedules edit ${shellWord(args.name)}`,
      client.schedules.create({
        name: args.name,
        ...timing,
        ...what,
        ...(await input?.(client)),
        ...given({ limitRate }),
        target,
        ...options,
        ...gates,
        ...enabled,
      }),
    )
    const often = oftenNote(schedule.everySeconds)
    if (often !== null) this.notice(often)
    this.done(`added ${schedule.name} (id ${schedule.id}), next: ${nextOf(schedule, flags.utc)}`)
    this.hint(`next: rsm schedules next ${shellWord(schedule.name)}`)
    return schedule
  }
}
