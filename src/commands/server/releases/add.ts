import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { string } from '@oclif/core/flags'
import { LocalCommand } from '../../../cli/command/base-command.ts'
import { control } from '../../../cli/command/control.ts'
import { withIncoming } from '../../../cli/command/incoming.ts'
import { needed } from '../../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../../cli/flags/service.ts'
import { readNamedFile } from '../../../cli/input/named-path.ts'
import { RsmError } from '../../../core/errors.ts'
import { buildOf } from '../../../core/release.ts'

export default class ServerReleasesAdd extends LocalCommand {
  static override summary = 'Offer an executable of rsm to hosts'
  static override description =
    'A server that runs from a single executable offers that. For hosts of another architecture, or if the ' +
    'server runs from an npm package, add the executable of the release; it replaces one of the same name. With ' +
    'the release signature (FILE.sig) beside it, `rsm hosts upgrade` can upgrade hosts to its version. Run it ' +
    "on the server's machine, as its user or root; it needs no token."
  static override examples = [
    '$ rsm server releases add packages/rsm-linux-arm64',
    '$ rsm server releases add ./rsm --name rsm-linux-x64 --data-dir /var/lib/rsm/server',
  ]
  static override args = {
    file: needed('rsm-linux-x64 or rsm-linux-arm64, or its .xz'),
  }
  static override flags = {
    name: string({ helpValue: 'NAME', description: 'name of the executable, if the file has another name' }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { args, flags } = await this.parse(ServerReleasesAdd)
    const name = flags.name ?? basename(args.file)
    if (buildOf(name) === null)
      throw new RsmError('usage', `invalid name of an executable: ${name}`, {
        hint: 'add --name rsm-linux-x64 or --name rsm-linux-arm64, with .xz if it is compressed',
      })
    const directory = dataDirectory('server', flags['data-dir'])
    // Check that a server is running before copying 120 MB.
    await control(directory, 'releases-list', {})
    const beside = `${args.file}.sig`
    const signature = existsSync(beside) ? readNamedFile(beside, 'the signature of the release') : null
    const added = await withIncoming(directory, args.file, (incoming) =>
      control(directory, 'releases-add', { incoming, name, ...(signature !== null && { signature }) }),
    )
    this.done(`the server now offers ${added.name}, sha256 ${added.sha256}`)
    if (added.version !== null) this.done(`hosts can be upgraded to ${added.version}: rsm hosts upgrade`)
    return added
  }
}
