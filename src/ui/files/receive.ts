import { closeSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { download } from '../../client/download.ts'
import type { ClientFileService } from '../../client/services/files.ts'
import { RsmError } from '../../core/errors.ts'
import type { Fetch } from '../../core/protocol/http/files.ts'
import { Appender } from '../../disk/appender.ts'
import { attributesFor } from '../../disk/files/attributes.ts'
import { Failure } from '../../disk/files/failure.ts'
import { HeldDirectory } from '../../disk/files/held-directory.ts'
import { putTree } from '../../disk/files/put-tree.ts'
import { formerOf, Replacement } from '../../disk/files/replacement.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { showBytes } from '../text/bytes.ts'
import { LocalTemporaries } from './local-temporaries.ts'
import { showTransfer } from './progress.ts'

interface Coming {
  readonly taskId: string
  readonly hostId: number
  readonly hostname: string
  readonly kind: Fetch['kind']
  /** Bounds a tree. */
  readonly mostEntries: number
}

const nobody = { uid: null, gid: null } as const

/** One file, which takes its place when all of it is there. */
async function putFile(
  path: string,
  directory: HeldDirectory,
  temporaries: LocalTemporaries,
  bytes: AsyncIterable<Buffer>,
): Promise<void> {
  const name = basename(path)
  const found = formerOf(directory, name)
  const usual = 0o666 & ~process.umask()
  const wish = { mode: undefined, sourceMode: usual, ...nobody }
  const replacement = new Replacement(temporaries, directory, name)
  try {
    for await (const piece of bytes) await replacement.write(piece)
    const attributes = attributesFor(wish, found?.isFile() === true ? found : null)
    await replacement.commit(attributes, { keepsFormer: false })
  } finally {
    await replacement.close()
  }
  directory.sync()
}

/** A tree, judged by the rules of those that go to hosts: what a host sends leads out of no directory (contract §13). */
async function unpack(
  path: string,
  directory: HeldDirectory,
  temporaries: LocalTemporaries,
  bytes: AsyncIterable<Buffer>,
  mostEntries: number,
): Promise<void> {
  const { name, fd } = temporaries.create(directory)
  const tar = new Appender(fd)
  try {
    directory.remove(name)
    for await (const piece of bytes) await tar.write(piece)
    await tar.end()
    const wish = { mode: undefined, sourceMode: undefined, ...nobody }
    await putTree({ copy: { path }, wish, desk: temporaries, say: () => {} }, fd, mostEntries)
  } finally {
    await tar.settled()
    closeSync(fd)
  }
}

/** Brings what a task has fetched from a host to its place here; answers how much it was. Errors: `usage` where that can't be written. */
export async function receive(
  command: BaseCommand,
  files: Pick<ClientFileService, 'fetched'>,
  { taskId, hostId, hostname, kind, mostEntries }: Coming,
  path: string,
): Promise<string> {
  const progress = showTransfer(command, `receiving ${path}`)
  const temporaries = new LocalTemporaries(taskId)
  let received = 0
  const bytes = download((from) => files.fetched(taskId, hostId, from), {
    got: (now, size) => {
      received = now
      progress.at(now, size)
    },
    cut: progress.cut,
  })
  let directory: HeldDirectory | undefined
  try {
    directory = HeldDirectory.open(dirname(path))
    await (kind === 'TREE' ? unpack : putFile)(path, directory, temporaries, bytes, mostEntries)
    return showBytes(received)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new RsmError('usage', `what came from ${hostname} could not be put in place: ${error.message}`, {
      cause: error,
    })
  } finally {
    directory?.close()
    temporaries.close()
    progress.end()
  }
}
