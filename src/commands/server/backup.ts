import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlStream, isWithoutServer } from '../../cli/command/control.ts'
import { needed } from '../../cli/flags/checks.ts'
import {
  dataDirectory,
  insecureStore,
  keysFlag,
  serverDirectoryFlag,
  storePasswordFile,
} from '../../cli/flags/service.ts'
import { mayReplace, readNewPassphrase } from '../../cli/input/prompt.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { RsmError } from '../../core/errors.ts'

export default class ServerBackup extends LocalCommand {
  static override summary = 'Write a backup of a server to a file, also while it runs'
  static override description =
    'The file contains a snapshot of users, hosts, scripts and tasks with their results, and output, files, ' +
    'recordings and the audit log, but no metrics of hosts. It is verified while it is written, has mode 0600, ' +
    'and gets its name only once it is complete. With - it goes to stdout. The keys of the server are included ' +
    'only with --with-keys, encrypted with a passphrase, because anyone who has them can run scripts on every ' +
    "host. Run it on the server's machine, as its user or root; it needs no token. If no server is running, it " +
    'reads the data directory itself. With --store it reads a PostgreSQL store, whether its servers run or not.'
  static override examples = [
    '$ rsm server backup /backup/rsm.tar.gz --data-dir /var/lib/rsm/server',
    '$ rsm server backup rsm.tar.gz --with-keys --passphrase-file passphrase',
    '$ rsm server backup rsm.tar.gz --store postgres://rsm@pg1,pg2/rsm',
    '$ rsm server backup --without-output - | ssh backup.example.org "cat > rsm.tar.gz"',
  ]
  static override args = {
    file: needed('file to write, - for stdout'),
  }
  static override flags = {
    'without-output': boolean({
      description: 'leave out task output, files and terminal recordings',
    }),
    'with-keys': boolean({
      dependsOn: ['passphrase-file'],
      description: "include the server's keys, encrypted with the passphrase",
    }),
    'passphrase-file': string({
      helpValue: 'FILE',
      dependsOn: ['with-keys'],
      description: 'file with the passphrase, at least 12 characters',
    }),
    yes: boolean({ char: 'y', description: 'replace an existing file' }),
    'data-dir': serverDirectoryFlag,
    keys: keysFlag,
    store: string({ helpValue: 'URL', description: 'PostgreSQL store to read instead of asking a server' }),
    'store-password-file': storePasswordFile,
    'insecure-store': insecureStore,
  }

  async run() {
    const { args, flags } = await this.parse(ServerBackup)
    const isStdout = args.file === '-'
    if (isStdout && flags.json)
      throw new RsmError('usage', 'stdout is for the backup', { hint: 'name a file, or leave out --json' })
    if (isStdout && process.stdout.isTTY)
      throw new RsmError('usage', 'a backup cannot go to a terminal', { hint: 'name a file' })
    const given = flags['passphrase-file']
    const passphrase =
      given === undefined ? {} : { passphrase: readNewPassphrase(given, '--passphrase-file') }
    if (!isStdout) await mayReplace(args.file, flags.yes)
    const dataDir = dataDirectory('server', flags['data-dir'])
    const keys = flags.keys ?? join(dataDir, 'keys')
    // A running server may keep its keys elsewhere.
    const place = existsSync(keys) ? shellWord(keys) : "the server's keys"
    const withoutKeys = `the keys are not in it: copy ${place} once, or use --with-keys --passphrase-file FILE`
    const options = { withOutput: !flags['without-output'], ...passphrase }
    const { backupOffline, checkBackup, writeCheckedFile } = await import('../../server/app/offline.ts')
    const postgres =
      flags.store === undefined
        ? undefined
        : {
            store: flags.store,
            storePasswordFile: flags['store-password-file'],
            insecureStore: flags['insecure-store'],
          }
    const alone = async () => (await backupOffline(dataDir, flags.keys, options, postgres)).stream
    const backup = postgres
      ? await alone()
      : await controlStream(dataDir, 'backup', options).catch((error: unknown) => {
          if (isWithoutServer(error)) return alone()
          throw error
        })
    if (isStdout) {
      const { end } = await checkBackup(backup, async (chunk) => {
        if (!process.stdout.write(chunk)) await once(process.stdout, 'drain')
      })
      this.#warn(end.damaged)
      if (given === undefined) this.notice(withoutKeys)
      return undefined
    }
    const { header, end, bytes } = await writeCheckedFile(args.file, backup)
    this.#warn(end.damaged)
    this.done(`${args.file}: ${showBytes(bytes)}, ${end.files} files, checked`)
    if (!header.hasKeys) this.notice(withoutKeys)
    const { createdAt, storeId, store, sequence, hasOutput, hasKeys } = header
    return {
      file: args.file,
      bytes,
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

  #warn(damaged: readonly string[]): void {
    for (const sentence of damaged) this.notice(`warning: ${sentence}`)
  }
}
