import { string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { insecureStore, storePasswordFile } from '../../cli/flags/service.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { RsmError } from '../../core/errors.ts'

const isUrl = (text: string) => /^[a-z]+:\/\//i.test(text)

/** Direction and ends of the migration. Errors: `usage` for missing or conflicting flags. */
function endsOf({ from, store, to }: { from: string; store?: string | undefined; to?: string | undefined }) {
  const refuse = (message: string) => {
    throw new RsmError('usage', message, {
      hint: 'to PostgreSQL: --from DIR --store postgres://USER@HOST/DATABASE; back: --from postgres://USER@HOST/DATABASE --to DIR',
    })
  }
  const isBack = isUrl(from)
  const [needed, other] = isBack ? (['to', 'store'] as const) : (['store', 'to'] as const)
  const given = { store, to }
  if (given[other] !== undefined)
    refuse(`--${other} does not go with --from ${isBack ? 'a URL' : 'a directory'}`)
  if (given[needed] === undefined) refuse(`--from ${isBack ? 'a URL' : 'a directory'} needs --${needed}`)
  const end = given[needed] ?? ''
  if (from.trim() === '') refuse('--from is empty')
  if (end.trim() === '') refuse(`--${needed} is empty`)
  return isBack ? { isBack, store: from, directory: end } : { isBack, store: end, directory: from }
}

export default class ServerMigrate extends LocalCommand {
  static override summary = 'Move a stopped server from its data directory to PostgreSQL, or back'
  static override description =
    'Moves everything: users, hosts, tasks, output with its cursors, results, recordings, the audit log byte ' +
    'for byte, and metrics of hosts. It reads everything back and compares it before a server may start there. ' +
    'The old store stays unchanged, but no server starts on it again, so that nothing runs twice. Keys do not ' +
    'move: every server needs a copy of them. Agents and users notice only the pause. Run it on the machine of ' +
    'the data directory, as its user or root.\n\n--json: {from, to, storeId, moved}; moved has numbers of ' +
    'records, entries and bytes.'
  static override examples = [
    '$ rsm server migrate --from /var/lib/rsm/server --store postgres://rsm@pg1,pg2/rsm',
    '$ rsm server migrate --from postgres://rsm@pg1,pg2/rsm --to /srv/rsm --store-password-file /etc/rsm/store-password',
  ]
  static override flags = {
    from: string({
      helpValue: 'DIR|URL',
      required: true,
      description: 'data directory, or postgres://USER@HOST[,HOST…]/DATABASE',
    }),
    store: string({ helpValue: 'URL', description: 'empty database to move to' }),
    to: string({ helpValue: 'DIR', description: 'data directory to move to, empty or new' }),
    'store-password-file': storePasswordFile,
    'insecure-store': insecureStore,
    keys: string({
      helpValue: 'DIR',
      description: 'directory of the keys, to check them (default: keys/)',
    }),
  }

  async run() {
    const { flags } = await this.parse(ServerMigrate)
    const { isBack, store, directory } = endsOf(flags)
    const { migrateToDirectory, migrateToPostgres } = await import('../../server/app/migrate.ts')
    const { keysDir, ...migrated } = await (isBack ? migrateToDirectory : migrateToPostgres)({
      store,
      storePasswordFile: flags['store-password-file'],
      insecureStore: flags['insecure-store'],
      directory,
      keysDir: flags.keys,
      onProgress: (stage, kind, { bytes }) => this.notice(`${stage}: ${kind}, ${showBytes(bytes)}`),
    })
    const { from, to, moved } = migrated
    this.done(`${from}: moved to ${to}, and compared there`)
    const shown = ['hosts', 'users', 'scripts', 'tasks', 'output', 'recordings', 'audit'] as const
    this.done(shown.map((name) => `${name} ${moved[name] ?? 0}`).join(', '))
    const keys = shellWord(keysDir)
    if (isBack) {
      if (flags.keys === undefined)
        this.notice(`copy the keys of the servers to ${keys}: without them no server starts there`)
      this.hint(
        `next: rsm server start --data-dir ${shellWord(to)}${flags.keys === undefined ? '' : ` --keys ${keys}`}`,
      )
    } else {
      this.notice(`copy ${keys} to each server: all of them need the same keys`)
      this.notice(
        `no server starts on ${from} any more; to go back there, remove ${shellWord(`${from}/postgres.json`)}`,
      )
      this.hint(
        `next: rsm server start --store ${shellWord(store)}${flags['insecure-store'] ? ' --insecure-store' : ''} --keys ${keys} --server-name rsm1 --data-dir DIR`,
      )
    }
    return migrated
  }
}
