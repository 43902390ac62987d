import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { showBytes } from '../../cli/text/amounts.ts'

export default class ServerCompact extends LocalCommand {
  static override summary = 'Compact the store in the data directory of a server'
  static override description =
    'Replaces the journal of changes with a new snapshot, so that the next start is faster. A server does this ' +
    'automatically when the journal has grown. The previous snapshot and journal stay on disk until the next ' +
    'compaction. A running server writes the snapshot from memory, which repairs a store that is damaged on ' +
    "disk. Run it on the server's machine, as its user or root; it needs no token. It also works without a " +
    'running server, but not for a store in PostgreSQL.'
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
    this.done(`compacted the store: ${showBytes(before)} before, ${showBytes(after)} now`)
    return compacted
  }
}
