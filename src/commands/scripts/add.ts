import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refusingTaken } from '../../cli/command/failure.ts'
import { given, ifGiven, needed, optional, repeated } from '../../cli/flags/checks.ts'
import {
  meansFile,
  nameOfFile,
  readScriptText,
  scriptType,
  scriptTypeNames,
} from '../../cli/input/script-file.ts'
import { parseDuration } from '../../cli/input/values.ts'
import { readFrontMatter, usageLine } from '../../cli/text/front-matter.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { RsmError } from '../../core/errors.ts'
import type { ScriptCreate } from '../../core/protocol/http/scripts.ts'
import type { FrontMatter } from '../../core/scripts/front-matter.ts'

/** The last argument: FILE, or NAME FILE. */
function fileOf({ name, file }: { name: string; file?: string | undefined }): string {
  if (file !== undefined) return file
  if (name === '-' || meansFile(name)) return name
  throw new RsmError('usage', `no such file: ${name}`, {
    hint: 'rsm scripts add FILE, or rsm scripts add NAME FILE',
  })
}

function nameFor(file: string, matter: FrontMatter): string {
  if (matter.name !== undefined) return matter.name
  if (file !== '-') return nameOfFile(file)
  throw new RsmError('usage', 'the script on stdin has no name', {
    hint: 'rsm scripts add NAME -, or a line in the script: # rsm: name=NAME',
  })
}

export default class ScriptsAdd extends BaseCommand {
  static override summary = 'Store a script from a file, or from stdin with -'
  static override description =
    `Lines like "# rsm: name=deploy, timeout=5m" at the head of the file set options and declare params
(docs/use/scripts.md); options win. Without NAME, and without a name in the file, the name of the file is used.`
  static override usage = ['scripts add FILE [OPTIONS]', 'scripts add NAME FILE [OPTIONS]']
  static override examples = [
    '$ rsm scripts add ./deploy.sh',
    '$ rsm scripts add deploy ./deploy.sh --timeout 5m',
    '$ rsm scripts add disk - < disk.sh',
  ]
  static override args = {
    name: needed('name of the script; may be left out'),
    file: optional('file, or - for stdin'),
  }
  static override flags = {
    type: string({ options: scriptTypeNames, description: 'interpreter (default: from the file, or bash)' }),
    description: string({ char: 'd', description: 'description of the script' }),
    timeout: string({ char: 'u', helpValue: 'TIME', description: 'run time on a host, like 90 or 5m' }),
    tag: string({ char: 't', ...repeated, description: 'tag of the script' }),
    category: string({ description: 'category of the script' }),
  }

  async run() {
    const { args, flags } = await this.parse(ScriptsAdd)
    const file = fileOf(args)
    const content = await readScriptText(file)
    const what = file === '-' ? 'the script' : file
    const matter = readFrontMatter(content, what, (text) => this.notice(text))
    const name = args.file === undefined ? nameFor(file, matter) : args.name
    const { params, name: _, tags, ...said } = matter
    const input: ScriptCreate = {
      ...said,
      ...(tags === undefined ? {} : { tags: [...tags] }),
      name,
      content,
      type: scriptType(flags.type ?? matter.type, content, file),
      ...given({
        description: flags.description,
        timeout: ifGiven(flags.timeout, parseDuration),
        tags: flags.tag,
        category: flags.category,
      }),
    }
    const client = await this.client()
    const script = await refusingTaken(
      `script ${name}`,
      `rsm scripts edit ${shellWord(name)} --file ${shellWord(file)}`,
      client.scripts.create(input),
    )
    this.done(`stored ${script.name} (id ${script.id}, ${script.type})`)
    this.hint(`next: ${usageLine(script.name, params)}`)
    return script
  }
}
