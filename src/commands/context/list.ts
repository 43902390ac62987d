import { LocalCommand } from '../../cli/command/base-command.ts'
import { Contexts } from '../../cli/contexts/contexts.ts'

export default class ContextList extends LocalCommand {
  static override summary = 'List the known servers'
  static override examples = ['$ rsm context list']

  async run() {
    const { flags } = await this.parse(ContextList)
    const { current, contexts } = new Contexts().list()
    const rows = Object.entries(contexts).map(([name, context]) => ({
      name,
      ...context,
      current: name === current,
    }))
    if (rows.length === 0) this.notice('no server is configured yet: rsm login URL, or rsm quickstart')
    else if (!flags.json) {
      const { renderTable } = await import('../../cli/text/table.ts')
      await this.printLong(
        renderTable(rows, [
          { heading: ' ', value: (row) => (row.current ? '*' : ' ') },
          { heading: 'NAME', value: (row) => row.name, essential: true },
          { heading: 'URL', value: (row) => row.url },
          { heading: 'USER', value: (row) => row.username ?? null },
        ]),
      )
    }
    return { current, contexts: rows }
  }
}
