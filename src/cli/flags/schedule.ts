import { string } from '@oclif/core/flags'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { ScheduleCreate } from '../../core/protocol/http/schedules.ts'
import { meansFile, scriptType, scriptTypeNames } from '../input/script-file.ts'
import { parseTime, parseWholeSeconds } from '../input/values.ts'
import { findScript } from '../names/names.ts'
import { fileRunnable } from '../task/runnable.ts'
import { type FlagsOf, given, ifGiven } from './checks.ts'
import { executionFlags, stdinFlag } from './run.ts'

const when = { helpGroup: 'WHEN' } as const

/** When a schedule runs, and what happens to slots that it misses (contract §14). */
export const timingFlags = {
  cron: string({
    ...when,
    helpValue: 'EXPRESSION',
    exclusive: ['every', 'at'],
    description: "cron fields, like '30 3 * * 1-5', or @daily, @weekly, …",
  }),
  every: string({
    ...when,
    helpValue: 'TIME',
    exclusive: ['at'],
    description: 'run at this interval, like 90s or 6h',
  }),
  at: string({ ...when, helpValue: 'TIME', description: "run once, like '2026-11-24 03:30'" }),
  tz: string({
    ...when,
    helpValue: 'ZONE',
    description: 'time zone of --cron, like Europe/Berlin (default: UTC)',
  }),
  from: string({ ...when, helpValue: 'TIME', description: 'do not run before this time' }),
  until: string({ ...when, helpValue: 'TIME', description: 'do not run after this time' }),
  jitter: string({
    ...when,
    helpValue: 'TIME',
    description: 'delay each run by up to this; less than the interval',
  }),
  overlap: string({
    ...when,
    options: ['skip', 'queue', 'allow'],
    description: 'while it still runs: skip (default), queue one, or allow',
  }),
  missed: string({
    ...when,
    options: ['skip', 'once'],
    description: 'missed runs: skip, or run the latest once (default)',
  }),
  'missed-within': string({
    ...when,
    helpValue: 'TIME',
    description: 'with --missed once: oldest run to make up (default: 1h)',
  }),
}

/** Execution options of a schedule, which runs a script or a copy. */
export const scheduledRunFlags = {
  ...executionFlags,
  timeout: {
    ...executionFlags.timeout,
    description: "run time; 0 = none (default: the script's or 5m; --copy: 1h)",
  },
}

/** Flags for a script in place of a command after `--`. */
export const scheduledScriptFlags = {
  script: string({
    helpGroup: 'RUN',
    helpValue: 'FILE|NAME',
    description: 'run this file, or this stored script as it is at each run',
  }),
  type: string({
    helpGroup: 'RUN',
    options: scriptTypeNames,
    description: 'interpreter of a file or command (default: bash)',
  }),
  stdin: { ...stdinFlag, exclusive: ['copy'] },
}

type Timing = Pick<
  ScheduleCreate,
  | 'cron'
  | 'everySeconds'
  | 'at'
  | 'timezone'
  | 'from'
  | 'until'
  | 'jitterSeconds'
  | 'overlap'
  | 'missed'
  | 'missedWithinSeconds'
>

/** Reads the timing flags; the server decides those that are not given. */
export function readTiming(flags: FlagsOf<typeof timingFlags> & { readonly utc: boolean }): Timing {
  const time = (option: string, text: string | undefined) =>
    ifGiven(text, (typed) => parseTime(option, typed, flags.utc))
  return given({
    cron: flags.cron,
    everySeconds: ifGiven(flags.every, (text) => parseWholeSeconds('--every', text)),
    at: time('--at', flags.at),
    timezone: flags.tz,
    from: time('--from', flags.from),
    until: time('--until', flags.until),
    jitterSeconds: ifGiven(flags.jitter, (text) => parseWholeSeconds('--jitter', text)),
    overlap: flags.overlap?.toUpperCase() as Timing['overlap'],
    missed: flags.missed?.toUpperCase() as Timing['missed'],
    missedWithinSeconds: ifGiven(flags['missed-within'], (text) =>
      parseWholeSeconds('--missed-within', text),
    ),
  })
}

/** Splits a command line at `--`; joins the words of the command with spaces, like `rsm exec`. */
export function splitCommand(argv: readonly string[]): { options: string[]; command: string | undefined } {
  const at = argv.indexOf('--')
  if (at === -1) return { options: [...argv], command: undefined }
  const command = argv.slice(at + 1).join(' ')
  return { options: argv.slice(0, at), command: command.trim() === '' ? undefined : command }
}

/** Errors: `usage` if both a script and a command are given. */
export function refuseTwoScripts(script: string | undefined, command: string | undefined): void {
  if (script !== undefined && command !== undefined)
    throw new RsmError('usage', `either --script or a command, not both: ${command}`, {
      hint: 'give values to a script with -p KEY=VALUE',
    })
}

/** Reads a file now; only looks up a stored script, because that is read at each run. */
export async function readScheduledScript(
  client: Client,
  {
    script,
    type,
    command,
  }: Pick<FlagsOf<typeof scheduledScriptFlags>, 'script' | 'type'> & { readonly command: string | undefined },
  notice: (text: string) => void,
): Promise<Pick<ScheduleCreate, 'script' | 'scriptId'>> {
  if (command !== undefined) return { script: { content: command, type: scriptType(type, '') } }
  if (script === undefined) return {}
  if (!meansFile(script)) return { scriptId: (await findScript(client, script, 'file or script')).id }
  return { script: (await fileRunnable(script, type, notice)).script }
}
