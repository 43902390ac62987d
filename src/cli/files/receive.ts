import { randomBytes } from 'node:crypto'
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname } from 'node:path'
import { download } from '../../client/download.ts'
import type { ClientFileService } from '../../client/services/files.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import { attributesFor } from '../../disk/files/attributes.ts'
import { Failure } from '../../disk/files/failure.ts'
import { OpenDirectory } from '../../disk/files/open-directory.ts'
import { Appender } from '../../disk/files/open-file.ts'
import { putTree } from '../../disk/files/put-tree.ts'
import { Replacement, statReplaceable, type Temporaries } from '../../disk/files/replacement.ts'
import { bareText } from '../../disk/files/settle.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { showTransfer } from '../output/status-line.ts'
import { showBytes } from '../text/amounts.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const noOwner = { uid: null, gid: null } as const

interface Coming {
  readonly taskId: string
  readonly hostId: number
  readonly hostname: string
  readonly kind: Fetch['kind']
  readonly mostEntries: number
}

/** Downloads a file or tree to `path`; returns its size and a warning. Errors: `usage` if unwritable. */
export async function receive(
  command: BaseCommand,
  files: Pick<ClientFileService, 'fetched'>,
  { taskId, hostId, hostname, kind, mostEntries }: Coming,
  path: string,
): Promise<{ readonly bytes: string; readonly warning: string | null }> {
  const progress = showTransfer(command, `receiving ${path}`)
  const temporaries = new LocalTemporaries(taskId, (line) => command.notice(line))
  let received = 0
  const bytes = download((from) => files.fetched(taskId, hostId, from), {
    got: (now, size) => {
      received = now
      progress.at(now, size)
    },
    cut: progress.cut,
  })
  let directory: OpenDirectory | undefined
  try {
    directory = OpenDirectory.open(dirname(path))
    let warning: string | null = null
    if (kind === 'TREE') warning = await unpack(path, directory, temporaries, bytes, mostEntries)
    else await putFile(path, directory, temporaries, bytes)
    return { bytes: showBytes(received), warning }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new RsmError('usage', `the files from ${hostname} could not be written: ${error.message}`, {
      cause: error,
    })
  } finally {
    directory?.close()
    temporaries.close()
    progress.end()
  }
}

/** Unpacks a tree by the rules for hosts, so that no entry leaves the directory (contract §13). */
async function unpack(
  path: string,
  directory: OpenDirectory,
  temporaries: LocalTemporaries,
  bytes: AsyncIterable<Buffer>,
  mostEntries: number,
): Promise<string | null> {
  const { name, fd } = temporaries.create(directory)
  const tar = new Appender(fd)
  try {
    directory.remove(name)
    for await (const piece of bytes) await tar.write(piece)
    await tar.end()
    const desired = { mode: undefined, sourceMode: undefined, ...noOwner }
    const bare: string[] = []
    await putTree({ copy: { path }, desired, workspace: temporaries, say: () => {}, bare }, fd, mostEntries)
    return bareText(bare)
  } finally {
    await tar.settled()
    closeSync(fd)
  }
}

/** Writes one file, renamed into place when complete. */
async function putFile(
  path: string,
  directory: OpenDirectory,
  temporaries: LocalTemporaries,
  bytes: AsyncIterable<Buffer>,
): Promise<void> {
  const name = basename(path)
  const found = statReplaceable(directory, name)
  const usual = 0o666 & ~process.umask()
  const desired = { mode: undefined, sourceMode: usual, ...noOwner }
  const replacement = new Replacement(temporaries, directory, name)
  try {
    for await (const piece of bytes) await replacement.write(piece)
    const attributes = attributesFor(desired, found?.isFile() === true ? found : null)
    await replacement.commit(attributes, { keepsPrevious: false })
  } finally {
    await replacement.close()
  }
  directory.sync()
}

/** Local temporary files, removed even when a signal ends this process. */
export class LocalTemporaries implements Temporaries {
  readonly taskId: string
  readonly #notice: (line: string) => void
  readonly #notes = new Set<string>()
  #last: { directory: OpenDirectory; name: string } | undefined
  readonly #end = (signal: NodeJS.Signals) => {
    this.#sweep()
    process.exit(128 + constants.signals[signal])
  }

  constructor(taskId: string, notice: (line: string) => void) {
    this.taskId = taskId
    this.#notice = notice
    for (const signal of signals) process.once(signal, this.#end)
  }

  report(): void {}

  checkCancelled(): void {}

  note(sentence: string): void {
    if (!this.#notes.has(sentence)) this.#notice(sentence)
    this.#notes.add(sentence)
  }

  create(directory: OpenDirectory): { name: string; fd: number } {
    for (;;) {
      const name = this.reserve(directory)
      const fd = directory.createFile(name)
      if (fd !== null) return { name, fd }
    }
  }

  reserve(directory: OpenDirectory): string {
    const name = `.rsm-${this.taskId}-${randomBytes(4).toString('hex')}.part`
    this.#last = { directory, name }
    return name
  }

  close(): void {
    for (const signal of signals) process.off(signal, this.#end)
  }

  /** Only the last one may be left: earlier ones were renamed or removed. */
  #sweep(): void {
    try {
      this.#last?.directory.remove(this.#last.name)
    } catch {
      // Its directory is closed, so it is finished.
    }
  }
}
