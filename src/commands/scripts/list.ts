import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given } from '../../cli/flags/checks.ts'
import { scriptTypeNames } from '../../cli/input/script-file.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import type { ScriptQuery } from '../../core/protocol/http/scripts.ts'

export default class ScriptsList extends BaseCommand {
  static override summary = 'List stored scripts'
  static override examples = ['$ rsm scripts list --type bash']
  static override flags = {
    type: string({ options: scriptTypeNames, description: 'only scripts of this type' }),
    category: string({ description: 'only scripts of this category' }),
    tag: string({ char: 't', description: 'only scripts with this tag' }),
    search: string({ helpValue: 'TEXT', description: 'only names that contain this text' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(ScriptsList)
    const client = await this.client()
    const query: ScriptQuery = given({ category: flags.category, tag: flags.tag, search: flags.search })
    if (flags.type !== undefined) query.type = flags.type.toUpperCase() as NonNullable<ScriptQuery['type']>
    const page = await allPages((paging) => client.scripts.list(paging), query, flags.limit)
    return showList(this, page, {
      noun: 'scripts',
      filtered: Object.keys(query).length > 0,
      none: 'no scripts: rsm scripts add NAME FILE',
      columns: [
        { heading: 'ID', value: (script) => script.id, essential: true },
        { heading: 'NAME', value: (script) => script.name, essential: true },
        { heading: 'TYPE', value: (script) => script.type },
        { heading: 'VERSION', value: (script) => script.version, essential: true },
        timeColumn('CHANGED', ({ updatedAt }) => updatedAt, flags.utc),
        { heading: 'DESCRIPTION', value: (script) => script.description },
      ],
    })
  }
}
