import { lchownSync, realpathSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { control, controlStream, cutFault } from '../../cli/command/control.ts'
import { isApart, isForsaken, runApart, undisturbed } from '../../cli/command/own-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { dataDirectory, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { RsmError } from '../../core/errors.ts'
import type { ProcessStatus, UpgradeNote } from '../../core/protocol/control.ts'
import { compareVersions } from '../../core/release.ts'
import { type Candidate, prepare, refusePackaged } from '../../install/upgrade/candidate.ts'
import { executableOf, operatedBy } from '../../install/upgrade/running-server.ts'
import { backupsIn, formerOf, upgradeServer } from '../../install/upgrade/upgrade-server.ts'

/** The given executable, or that of the running server. Errors: `conflict` if that cannot be replaced as a single file. */
function executableFor({ pid }: ProcessStatus, given: string | undefined): string {
  const running = executableOf(pid)
  if (given !== undefined) return realpathSync(resolve(given))
  if (running.endsWith(' (deleted)'))
    throw new RsmError(
      'conflict',
      'the executable of the running server has been replaced since it started',
      {
        hint: 'restart the server first',
      },
    )
  if (/\/node(js)?$/.test(running))
    throw new RsmError(
      'conflict',
      'the server runs from Node and the files of a package, not from one executable',
      {
        hint: 'install the new package over it and restart the server; or name the executable: --executable FILE',
      },
    )
  return running
}

/** Errors: `conflict` for a PostgreSQL store: rolling it back is impossible, because other servers keep writing to it. */
function refuseShared({ storeAddress }: ProcessStatus): void {
  if (storeAddress == null) return
  throw new RsmError(
    'conflict',
    `the store of this server is ${storeAddress}; this command can roll back only a store on disk`,
    {
      hint: 'install the new version and restart the server, on one server after the other; nothing was changed',
    },
  )
}

/** Errors: `conflict` for a version older than the running one. */
function mayBecome(from: string, { version }: Candidate, allowDowngrade: boolean): void {
  if (allowDowngrade || compareVersions(version, from)?.isOlder !== true) return
  throw new RsmError('conflict', `the file is rsm ${version}, older than the server (${from})`, {
    hint: 'nothing was changed; --allow-downgrade tries it anyway; an older version may refuse the data',
  })
}

export default class ServerUpgrade extends LocalCommand {
  static override summary = "Replace the server's executable; roll back if it fails to start"
  static override description =
    'First checks the signature of the file (FILE.sig) if this build of rsm has a release key, otherwise its ' +
    'sha256 (or --allow-unsigned), and that it runs on this machine. Then writes a backup without output, files and ' +
    'recordings, stops the server, replaces the executable, and starts the server: with systemctl if it is a ' +
    'systemd unit, otherwise with its previous arguments. If the server is not ready within 60 s, the previous ' +
    "executable and store are restored. Scripts keep running meanwhile. Run it on the server's machine, as its " +
    'user or root; it needs no token.'
  static override examples = [
    '$ rsm server upgrade ./rsm-linux-x64',
    '$ rsm server upgrade ./rsm-linux-x64 --allow-unsigned   # of your own build',
    '$ rsm server upgrade ./rsm-linux-x64 --allow-downgrade --data-dir /var/lib/rsm/server',
  ]
  static override args = { file: needed('new executable of rsm') }
  static override flags = {
    sha256: string({ helpValue: 'HEX', description: 'sha256 that the file must have' }),
    'allow-downgrade': boolean({ description: 'allow an older version' }),
    'allow-unsigned': boolean({ description: 'allow an unsigned file, in a build without a release key' }),
    executable: string({
      helpValue: 'FILE',
      description: "executable to replace (default: the server's own)",
    }),
    backup: string({
      helpValue: 'FILE',
      description: 'backup file (default: in backups/ of the data directory)',
    }),
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { args, flags } = await this.parse(ServerUpgrade)
    const dataDir = dataDirectory('server', flags['data-dir'])
    const status = () => control(dataDir, 'status', {})
    const before = await status().catch((error: unknown) => {
      throw cutFault(dataDir, error)
    })
    refuseShared(before)
    if (!isApart()) return this.#wait(dataDir)
    const from = before.version
    const target = executableFor(before, flags.executable)
    await refusePackaged(target)
    const server = await operatedBy(before.pid, target)
    const candidate = await prepare({
      file: args.file,
      target,
      sha256: flags.sha256,
      allowUnsigned: flags['allow-unsigned'],
    })
    const { version: to, sha256 } = candidate
    try {
      mayBecome(from, candidate, flags['allow-downgrade'])
      if (!candidate.isSigned) this.notice('the signature of the file was not verified')
      const backup = await this.#backUp(dataDir, flags.backup, from)
      if (isForsaken()) throw new RsmError('interrupted', 'nothing was changed')
      // Servers older than this command do not know the call.
      const note = (text: UpgradeNote) =>
        control(dataDir, 'upgrade-note', text).catch((error: unknown) => {
          if (!(error instanceof RsmError) || error.code !== 'not_found') throw error
        })
      const say = (step: string) => this.done(step)
      const upgrade = { dataDir, target, from, candidate, server, status, note, say }
      await undisturbed(
        () => this.notice('the upgrade continues: stopping half-way would leave the server stopped'),
        () => upgradeServer(upgrade),
      )
      this.done(`the server runs rsm ${to}; the previous executable is ${formerOf(target)}`)
      return { from, to, sha256, executable: target, former: formerOf(target), backup }
    } finally {
      await rm(candidate.path, { force: true })
    }
  }

  /** Waits for the detached process that upgrades the server and prints its own progress. */
  async #wait(dataDir: string): Promise<undefined> {
    const exit = await runApart()
    if (exit === null) throw cutFault(dataDir, new RsmError('interrupted', 'the upgrade was killed'))
    process.exitCode = exit
  }

  /** Leaves out output, files and recordings, because no version changes those. */
  async #backUp(dataDir: string, given: string | undefined, from: string): Promise<string> {
    const at = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
    const file = given ?? join(backupsIn(dataDir), `before-upgrade-of-${from}-${at}.backup`)
    const { writeCheckedFile } = await import('../../server/app/offline.ts')
    const stream = await controlStream(dataDir, 'backup', { withOutput: false })
    const { bytes } = await writeCheckedFile(file, stream)
    if (given === undefined) {
      const { uid, gid } = statSync(dataDir)
      lchownSync(file, uid, gid)
    }
    this.done(`backup: ${file}, ${showBytes(bytes)}`)
    return file
  }
}
