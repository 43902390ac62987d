import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/command/directories.ts'
import { showBytes } from '../../cli/text/amounts.ts'

export default class ServerCompact extends LocalCommand {
  static override summary = 'Rewrite the store of a server without obsolete records'
  static override description =
    'A server does this automatically when the journal of its changes has grown; it starts fastest right after ' +
    'it. A running server writes the store from its memory, which also replaces files that the disk has ' +
    "damaged. Run it on the server's machine, as its user or root; it needs no token. It works without a " +
    'running server, too.'
  static override examples = ['$ rsm server compact', '$ rsm server compact --data-dir /var/lib/rsm/server']
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { flags } = await this.parse(ServerCompact)
    const compacted = await controlOr(
      dataDirectory('server', flags['data-dir']),
      'compact',
      {},
      async (path) => {
        const { compactOffline } = await import('../../server/app/offline.ts')
        return compactOffline(path)
      },
    )
    const { before, after } = compacted
    this.done(`the store had ${showBytes(before)} and has ${showBytes(after)} now`)
    return compacted
  }
}
