import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, open, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { string } from '@oclif/core/flags'
import { LocalCommand } from '../../../cli/command/base-command.ts'
import { control } from '../../../cli/command/control.ts'
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

/**
 * Copies a file into `releases/` of a data directory, because the server may read no other directory; calls `use` with its
 * name there. Errors: `usage` for an unreadable file, `unavailable` if the disk is full.
 */
export async function withIncoming<T>(
  dataDir: string,
  file: string,
  use: (name: string) => Promise<T>,
): Promise<T> {
  const name = `.incoming-${randomBytes(6).toString('hex')}`
  const path = join(dataDir, 'releases', name)
  try {
    await copyFile(file, path).catch((error: NodeJS.ErrnoException) => {
      throw explain(error, file, dataDir)
    })
    const handle = await open(path, 'r+')
    await handle.chmod(0o644)
    await handle.sync()
    await handle.close()
    return await use(name)
  } finally {
    await rm(path, { force: true })
  }
}

function explain(error: NodeJS.ErrnoException, file: string, dataDir: string): RsmError {
  const isSource = error.syscall === 'open' || error.path === file
  if (error.code === 'ENOSPC')
    return new RsmError('unavailable', `no room in ${dataDir}/releases for ${file}`, { cause: error })
  return new RsmError('usage', `cannot copy ${file} to ${dataDir}/releases: ${error.message}`, {
    ...(isSource && {
      hint: "choose a file that you can read, and run this as the server's user, or as root",
    }),
    cause: error,
  })
}
