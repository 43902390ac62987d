import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findScript } from '../../cli/names/names.ts'
import { renderParams, tellFaults, usageLine } from '../../cli/text/front-matter.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'
import { parseFrontMatter } from '../../core/scripts/front-matter.ts'

export default class ScriptsShow extends BaseCommand {
  static override summary = 'Show a stored script, its params and its text'
  static override examples = ['$ rsm scripts show deploy']
  static override args = { script: needed('name of the script') }

  async run() {
    const { args, flags } = await this.parse(ScriptsShow)
    const script = await findScript(await this.client(), args.script)
    const { renderFields } = await import('../../cli/text/table.ts')
    this.print(
      renderFields({
        id: script.id,
        name: script.name,
        type: script.type,
        version: script.version,
        description: script.description,
        timeout: script.timeout === null ? null : `${script.timeout} s`,
        tags: script.tags.join(', '),
        category: script.category,
        changed: `${showTime(script.updatedAt, flags.utc)}, made by ${script.createdBy}`,
        sha256: script.sha256,
      }),
    )
    const { matter, faults } = parseFrontMatter(script.content)
    if (matter.params.length > 0) this.print(`\n${await renderParams(matter.params)}`)
    if (faults.length > 0) this.notice(tellFaults(script.name, faults))
    else this.print(`\nusage: ${sanitizeLine(usageLine(script.name, matter.params))}`)
    this.print(`\n${sanitize(script.content).trimEnd()}`)
    return script
  }
}
