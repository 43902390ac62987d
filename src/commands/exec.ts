import { string } from '@oclif/core/flags'
import { splitOptions } from '../cli/command/argv.ts'
import { BaseCommand } from '../cli/command/base-command.ts'
import { ifGiven } from '../cli/flags/checks.ts'
import { gateFlags, runFlags, stdinFlag } from '../cli/flags/run.ts'
import { type TargetFlags, targetFlags } from '../cli/flags/targets.ts'
import { meansFile, scriptType, scriptTypeNames } from '../cli/input/script-file.ts'
import { besideStdin, stdinReader } from '../cli/input/stdin.ts'
import { findScript } from '../cli/names/names.ts'
import { readOrder, runOrder } from '../cli/task/run.ts'
import { fileRunnable, type Runnable, scriptRunnable, storedRunnable } from '../cli/task/runnable.ts'
import { RsmError } from '../core/errors.ts'

/** Text of the command, of a file or of stdin; undefined if --script names a stored script. */
async function readOwnText(
  script: string | undefined,
  type: string | undefined,
  words: readonly string[],
  stdin: (what: string) => Promise<string>,
  notice: (text: string) => void,
): Promise<Runnable | undefined> {
  if (script !== undefined && words.length > 0)
    throw new RsmError('usage', `either --script or a command, not both: ${words.join(' ')}`, {
      hint: 'give values to a script with -p KEY=VALUE',
    })
  const fromStdin = script === '-' || (words.length === 1 && words[0] === '-')
  if (script !== undefined && !fromStdin) {
    if (!meansFile(script)) return undefined
    return fileRunnable(script, type, notice)
  }
  const text = fromStdin ? await stdin('the script') : words.join(' ')
  if (text.trim() === '')
    throw new RsmError('usage', 'nothing to run', { hint: "rsm exec -w 'web[1-3]' uptime, or --script FILE" })
  if (fromStdin) return scriptRunnable(text, '', undefined, type, notice)
  return { script: { content: text, type: scriptType(type, '') }, text, params: [] }
}

/** Whether this is a command like `bash -c 'echo a b'`, which means something else without its quotes. */
function isTornShell([program = '', option = '', text = '']: readonly string[]): boolean {
  return /^(?:\/\S*\/)?(?:ba|da|z|k)?sh$/.test(program) && /^-\w*c$/.test(option) && /\s/.test(text)
}

export default class Exec extends BaseCommand {
  static override summary = 'Run a command or a script on hosts and watch its output'
  static override description =
    `Everything after the first word that is not an option is the command: bash runs it on each host, joined with spaces (as ssh does).
Each host has RSM_HOST, RSM_HOST_ID, RSM_CLUSTERS, RSM_TAGS and RSM_TAG_... (each tag) in its environment.
Exit code: 0 if all hosts succeeded; for one host its own (124 timeout, 255 unreachable); for several, 1 if any did not succeed.`
  static override examples = [
    "$ rsm exec -w 'web[1-3]' uptime",
    '$ rsm exec -t role=web --strategy rolling --batch-size 1,25% -- systemctl restart nginx',
    '$ rsm exec -a -b --script ./check.sh -p LEVEL=full',
    '$ rsm exec -g production --batch-size 1,50% -p LEVEL=full --verify ./check.sh --verify-retries 5 -- uptime',
    '$ rsm exec -g production -o live -o junit=report.xml --script ./check.sh',
    `$ rsm exec -g production -- 'echo "$RSM_HOST $RSM_TAG_ROLE"'`,
    '$ echo "df -h /" | rsm exec -g production -',
    '$ rsm exec -w db1 --stdin app.sql -- psql app',
  ]
  static override usage = 'exec [TARGETS] [OPTIONS] [--] COMMAND...'
  static override strict = false
  static override flags = {
    ...targetFlags,
    script: string({
      helpGroup: 'RUN',
      helpValue: 'FILE|NAME',
      description: 'run this file or stored script',
    }),
    type: string({ helpGroup: 'RUN', options: scriptTypeNames, description: 'interpreter (default: bash)' }),
    stdin: stdinFlag,
    ...runFlags,
    ...gateFlags,
  }

  async run() {
    const { options, words } = splitOptions(this.argv, { ...Exec.flags, ...BaseCommand.baseFlags })
    const { flags } = await this.parse(Exec, options)
    const stdin = stdinReader()
    const order = await readOrder(flags, stdin, (text) => this.notice(text)).catch((error: unknown) =>
      this.#hostMeant(error, flags, words),
    )
    if (isTornShell(words))
      this.notice(
        `the words are joined by spaces, so ${words[0]} ${words[1]} gets only the first word of what you quoted: leave ${words[0]} ${words[1]} out`,
      )
    const input = await ifGiven(flags.stdin, async (path) =>
      (await import('../cli/files/send.ts')).openScriptStdin(this, path, stdin),
    )
    const own = await readOwnText(flags.script, flags.type, words, stdin, (text) => this.notice(text))
    const client = await this.client()
    const asScript =
      flags.script === undefined
        ? '; use - to run it as the script, --stdin - to pass it on'
        : '; --stdin - passes it on'
    const bring = input && (() => input.bring(client))
    try {
      return await besideStdin(this, stdin, asScript, async () => {
        const runnable =
          own ?? (await storedRunnable(await findScript(client, flags.script ?? '', 'file or script')))
        return runOrder(this, client, { ...order, bring }, runnable)
      })
    } finally {
      await input?.close()
    }
  }

  /** Without a target, the first word may be a host, as with ssh; asks the server whether it is. */
  async #hostMeant(mistake: unknown, flags: TargetFlags, words: readonly string[]): Promise<never> {
    const [first = ''] = words
    const isNamed = [flags.hosts, flags.cluster, flags.tag].some((names) => names !== undefined)
    if (words.length < 2 || isNamed || flags.all || !(mistake instanceof RsmError)) throw mistake
    if (!(await this.#isHost(first))) throw mistake
    const selector = /^[\w.,@-]+$/.test(first) ? first : `'${first}'`
    throw new RsmError(mistake.code, mistake.message, {
      hint: `hosts go after -w: rsm exec -w ${selector} COMMAND`,
    })
  }

  async #isHost(selector: string): Promise<boolean> {
    try {
      const client = await this.client()
      return (await client.hosts.list({ selector, size: 1 })).totalElements > 0
    } catch {
      return false
    }
  }
}
