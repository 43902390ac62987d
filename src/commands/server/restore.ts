import { createReadStream } from 'node:fs'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { readSecretFile } from '../../cli/input/named-path.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { RsmError } from '../../core/errors.ts'

async function* bytesOf(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Buffer
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'there is no such file' : message
    throw new RsmError('usage', `cannot read ${path}: ${why}`, { cause })
  }
}

export default class ServerRestore extends LocalCommand {
  static override summary = 'Restore a backup into an empty directory'
  static override description =
    'Verifies the whole file before it creates the directory: a backup that is incomplete, altered or made by a ' +
    'newer rsm leaves nothing behind. Everything that happened since the backup is missing. Tasks that were pending ' +
    'in the backup may have run since, so the server holds them until `rsm server confirm-restore`. Without ' +
    '--passphrase-file no keys are restored, and the server does not start until you put keys/ there, or add them with ' +
    '--keys-only. A backup of a store in PostgreSQL also becomes a data directory; `rsm server migrate` then moves it ' +
    'to an empty database.'
  static override examples = [
    '$ rsm server restore /backup/rsm.tar.gz --data-dir /srv/rsm',
    '$ rsm server restore rsm.tar.gz --data-dir /srv/rsm --passphrase-file passphrase',
  ]
  static override args = {
    file: needed('backup made by rsm server backup'),
  }
  static override flags = {
    'passphrase-file': string({
      helpValue: 'FILE',
      description: 'file with the passphrase of the keys in the backup',
    }),
    'keys-only': boolean({
      dependsOn: ['passphrase-file'],
      description: 'add the keys to a directory restored without them',
    }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { args, flags } = await this.parse(ServerRestore)
    const given = flags['passphrase-file']
    const passphrase = given === undefined ? undefined : readSecretFile(given, '--passphrase-file')
    const dataDir = dataDirectory('server', flags['data-dir'])
    const { restore, restoreKeys } = await import('../../server/app/offline.ts')
    const isKeysOnly = flags['keys-only'] && passphrase !== undefined
    const { header, end, directory, hasKeys } = isKeysOnly
      ? await restoreKeys(bytesOf(args.file), dataDir, passphrase)
      : await restore(bytesOf(args.file), dataDir, passphrase)
    const { createdAt, storeId, store, sequence, hasOutput } = header
    if (isKeysOnly) {
      this.done(`${directory}/keys: the keys of the backup of ${createdAt}`)
      return { directory, createdAt, storeId, store, sequence, hasOutput, hasKeys, files: 0, damaged: [] }
    }
    for (const sentence of end.damaged)
      this.notice(`warning: already damaged when the backup was made: ${sentence}`)
    this.done(`${directory}: the backup of ${createdAt}, ${end.files} files, checked`)
    if (!hasOutput) this.done('it has no task output, files or recordings')
    if (!hasKeys)
      this.notice(
        `the keys are missing: rsm server start refuses until ${shellWord(`${directory}/keys`)} is restored${header.hasKeys ? ` (they are in the backup: rsm server restore ${shellWord(args.file)} --data-dir ${shellWord(directory)} --keys-only --passphrase-file FILE)` : ''}`,
      )
    this.notice(
      'pending tasks of the backup are held until rsm server confirm-restore; users and agents that were revoked or disabled since have their old rights again',
    )
    const back = `rsm server migrate --from ${shellWord(directory)} --store URL`
    this.hint(
      `next: ${store === 'postgresql' ? `${back}, or ` : ''}rsm server start --data-dir ${shellWord(directory)}`,
    )
    return {
      directory,
      createdAt,
      storeId,
      store,
      sequence,
      hasOutput,
      hasKeys,
      files: end.files,
      damaged: end.damaged,
    }
  }
}
