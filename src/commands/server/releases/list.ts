import { LocalCommand } from '../../../cli/command/base-command.ts'
import { control } from '../../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../../cli/flags/service.ts'
import { showBytes } from '../../../cli/text/amounts.ts'
import { renderTable } from '../../../cli/text/table.ts'
import { timeColumn } from '../../../cli/text/time.ts'

const signatureWords = { VALID: 'yes', UNCHECKED: 'not checked', NONE: 'no' }

export default class ServerReleasesList extends LocalCommand {
  static override summary = 'List the executables of rsm that the server offers to hosts'
  static override examples = [
    '$ rsm server releases list',
    '$ rsm server releases list --data-dir /var/lib/rsm/server',
  ]
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { flags } = await this.parse(ServerReleasesList)
    const listed = await control(dataDirectory('server', flags['data-dir']), 'releases-list', {})
    const { releases } = listed
    if (releases.length === 0)
      this.print('no executables: rsm server releases add FILE; until then hosts need rsm installed')
    else
      this.print(
        renderTable(releases, [
          { heading: 'NAME', value: ({ name }) => name, essential: true },
          { heading: 'SIZE', value: ({ size }) => showBytes(size) },
          timeColumn(
            'ADDED',
            ({ addedAt }) => addedAt,
            flags.utc,
            ({ addedAt }) => (addedAt ? undefined : "the server's own"),
          ),
          { heading: 'VERSION', value: ({ version }) => version ?? '-' },
          { heading: 'SIGNED', value: ({ signature }) => signatureWords[signature ?? 'NONE'] },
          { heading: 'SHA256', value: ({ sha256 }) => sha256, essential: true },
        ]),
      )
    return listed
  }
}
