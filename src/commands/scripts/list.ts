import { integer, string } from '@oclif/core/flags'
import { allPages } from '../../client/http/pages.ts'
import type { ScriptQuery } from '../../core/protocol/http/scripts.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { scriptTypeNames } from '../../ui/input/script-file.ts'
import { showTime } from '../../ui/text/time.ts'

export default class ScriptsList extends BaseCommand {
  static override summary = 'List stored scripts'
  static override examples = ['$ rsm scripts list --type bash']
  static override flags = {
    type: string({ options: scriptTypeNames, description: 'only of this type' }),
    category: string({ description: 'only of this category' }),
    tag: string({ char: 't', description: 'only with this tag' }),
    search: string({ helpValue: 'TEXT', description: 'only names that contain this' }),
    limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }),
  }

  async run() {
    const { flags } = await this.parse(ScriptsList)
    this.globals = flags
    const client = await this.client()
    const query: ScriptQuery = {}
    if (flags.type !== undefined) query.type = flags.type.toUpperCase() as NonNullable<ScriptQuery['type']>
    if (flags.category !== undefined) query.category = flags.category
    if (flags.tag !== undefined) query.tag = flags.tag
    if (flags.search !== undefined) query.search = flags.search
    const page = await allPages((paging) => client.scripts.list(paging), query, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (script) => script.id, keep: true },
          { heading: 'NAME', value: (script) => script.name, keep: true },
          { heading: 'TYPE', value: (script) => script.type },
          { heading: 'VERSION', value: (script) => script.version, keep: true },
          { heading: 'CHANGED', value: (script) => showTime(script.updatedAt, flags.utc) },
          { heading: 'DESCRIPTION', value: (script) => script.description },
        ]),
      )
    }
    if (page.totalElements === 0) {
      const filtered = Object.keys(query).length > 0
      this.notice(filtered ? 'no scripts match' : 'no scripts: rsm scripts add NAME FILE')
    }
    this.saidCut(page, 'scripts')
    return page
  }
}
