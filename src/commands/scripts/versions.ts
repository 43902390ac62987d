import { custom } from '@oclif/core/args'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { needed, wholeNumber } from '../../cli/flags/checks.ts'
import { findScript } from '../../cli/names/names.ts'
import { sanitize } from '../../cli/text/sanitize.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'

/** Digits of a SHA-256 that are shown. */
const shortDigest = 12

export default class ScriptsVersions extends BaseCommand {
  static override summary = 'List the versions of a stored script, or print the text of one'
  static override description =
    'If stdout is not a terminal, the text is printed byte for byte; on a terminal, without control sequences.'
  static override examples = [
    '$ rsm scripts versions deploy',
    '$ rsm scripts versions deploy 3 | rsm scripts edit deploy --file -   # back to version 3',
  ]
  static override args = {
    script: needed('name of the script'),
    version: custom<number>({
      parse: async (text) => wholeNumber('VERSION', text, { min: 1 }),
    })({ ignoreStdin: true, description: 'version whose text to print' }),
  }
  static override flags = { limit: limitFlag }

  async run() {
    const { args, flags } = await this.parse(ScriptsVersions)
    const client = await this.client()
    const script = await findScript(client, args.script)
    if (args.version !== undefined) {
      const version = await client.scripts.version(script.id, args.version).catch((error: unknown) => {
        if (!(error instanceof RsmError && error.code === 'not_found')) throw error
        throw new RsmError('not_found', `${script.name} has no version ${args.version}`, {
          hint: `rsm scripts versions ${script.name}`,
        })
      })
      if (!this.globals.json)
        process.stdout.write(process.stdout.isTTY ? sanitize(version.content) : version.content)
      return version
    }
    const page = await allPages((paging) => client.scripts.versions(script.id, paging), {}, flags.limit)
    return showList(this, page, {
      noun: 'versions',
      filtered: false,
      none: '',
      columns: [
        { heading: 'VERSION', value: (version) => version.version, essential: true },
        timeColumn('CHANGED', ({ changedAt }) => changedAt, flags.utc),
        { heading: 'BY', value: (version) => version.changedBy },
        { heading: 'NAME', value: (version) => version.name, essential: true },
        { heading: 'TYPE', value: (version) => version.type },
        { heading: 'BYTES', value: (version) => version.bytes },
        { heading: 'SHA256', value: (version) => version.sha256.slice(0, shortDigest) },
      ],
    })
  }
}
