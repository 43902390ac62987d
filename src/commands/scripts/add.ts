import { string as word } from '@oclif/core/args'
import { string } from '@oclif/core/flags'
import type { ScriptCreate } from '../../core/protocol/http/scripts.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { readScriptFile, scriptType, scriptTypeNames } from '../../ui/input/script-file.ts'
import { stdinReader } from '../../ui/input/stdin.ts'
import { parseDuration } from '../../ui/input/values.ts'
import { refusingTaken } from '../../ui/name-taken.ts'

export default class ScriptsAdd extends BaseCommand {
  static override summary = 'Store a script from a file, or from stdin with -'
  static override examples = [
    '$ rsm scripts add deploy ./deploy.sh --timeout 5m',
    '$ rsm scripts add disk - < disk.sh',
  ]
  static override args = {
    name: word({ required: true, ignoreStdin: true, description: 'name of the script' }),
    file: word({ required: true, ignoreStdin: true, description: 'file, or - for stdin' }),
  }
  static override flags = {
    type: string({ options: scriptTypeNames, description: 'type, if the file does not tell' }),
    description: string({ char: 'd', description: 'what it does' }),
    timeout: string({ char: 'u', helpValue: 'TIME', description: 'run time on a host, like 90 or 5m' }),
    tag: string({ char: 't', multiple: true, multipleNonGreedy: true, description: 'tag of the script' }),
    category: string({ description: 'category of the script' }),
  }

  async run() {
    const { args, flags } = await this.parse(ScriptsAdd)
    this.globals = flags
    const content = args.file === '-' ? await stdinReader()('the script') : readScriptFile(args.file).text
    const input: ScriptCreate = { name: args.name, content, type: scriptType(flags.type, content, args.file) }
    if (flags.description !== undefined) input.description = flags.description
    if (flags.timeout !== undefined) input.timeout = parseDuration(flags.timeout)
    if (flags.tag !== undefined) input.tags = flags.tag
    if (flags.category !== undefined) input.category = flags.category
    const client = await this.client()
    const script = await refusingTaken(
      `script ${args.name}`,
      `rsm scripts show ${args.name}`,
      client.scripts.create(input),
    )
    this.print(`stored ${script.name} (id ${script.id}, ${script.type})`)
    this.hint(`next: rsm scripts run ${script.name} -w HOST`)
    return script
  }
}
