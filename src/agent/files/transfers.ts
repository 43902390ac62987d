import { closeSync, fstatSync, type Stats } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { CopyOrder, FetchOrder } from '../../core/protocol/messages.ts'
import { attributesFor, losesSetIds } from '../../disk/files/attributes.ts'
import { Failure, refusedBy } from '../../disk/files/failure.ts'
import { kindOf, OpenDirectory } from '../../disk/files/open-directory.ts'
import { Appender, bytesOf, hasChanged, sizeOf } from '../../disk/files/open-file.ts'
import { topName, treeOf } from '../../disk/files/pack-tree.ts'
import { putTree } from '../../disk/files/put-tree.ts'
import { sha256In, statReplaceable } from '../../disk/files/replacement.ts'
import { listed, type Placing, settle } from '../../disk/files/settle.ts'
import type { ServerLine } from './server-line.ts'

export interface Copying extends Placing {
  readonly copy: CopyOrder
  readonly server: Pick<ServerLine, 'receive'>
}

/** Copies a file from the server; returns whether anything changed. */
export async function copyFile(copying: Copying): Promise<boolean> {
  const { path, file } = copying.copy
  if (path.endsWith('/')) throw new Failure(`${path} names a directory, not a file`, 126)
  const directory = OpenDirectory.open(dirname(path))
  try {
    const name = basename(path)
    const found = statReplaceable(directory, name)
    const previous = found?.isFile() === true ? found : null
    const isSameText = previous?.size === file.size && (await sha256In(directory, name)) === file.sha256
    const wanted = attributesFor(copying.desired, previous)
    const place = { path, directory, name, previous, wanted, isSameText, size: file.size }
    const isChanged = await settle(copying, place, () => copying.server.receive(file))
    if (isChanged && losesSetIds(copying.desired, previous)) copying.bare.push(path)
    directory.sync()
    return isChanged
  } finally {
    directory.close()
  }
}

/** Copies a tree from the server. `spool`: an empty file, open for reading and writing. */
export async function copyTree(copying: Copying, spool: number): Promise<boolean> {
  await bringTree(copying, spool)
  return putTree(copying, spool)
}

/** Downloads a tree completely before reading it, because only then can its checksum be verified. */
async function bringTree({ copy, server }: Copying, spool: number): Promise<void> {
  const text = new Appender(spool)
  const written = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      throw refusedBy(error, "the tree in the agent's data directory", 'write')
    })
  for await (const piece of server.receive(copy.file)) await written(text.write(piece))
  await written(text.end())
}

type SendPieces = (pieces: AsyncIterable<Buffer>) => Promise<number>

/** Reads and sends the files of an order. Returns a sentence about files that changed meanwhile, or null. */
export function fetchFiles(fetch: FetchOrder, send: SendPieces): Promise<string | null> {
  return fetch.kind === 'TREE' ? fetchTree(fetch, send) : fetchFile(fetch, send)
}

/** Stats of the order's path. Throws `Failure` if it does not exist, or is a symlink without `follow`. */
function statsOf(directory: OpenDirectory, name: string, { path, follow = false }: FetchOrder): Stats {
  const stats = follow ? directory.statFollowed(name) : directory.lstat(name)
  if (stats === null) throw new Failure(`open ${path}: no such file or directory (ENOENT)`)
  if (!stats.isSymbolicLink()) return stats
  throw new Failure(`${path} is a symbolic link; use --follow to follow it`)
}

async function fetchFile(order: FetchOrder, send: SendPieces): Promise<string | null> {
  const { path, follow = false, maxSize } = order
  const fd = inDirectoryOf(path, (directory, name) => {
    const stats = statsOf(directory, name, order)
    // Opening a device could already have side effects.
    if (!stats.isFile()) throw new Failure(`${path} is ${kindOf(stats)}, not a regular file`)
    return directory.openFile(name, follow)
  })
  try {
    const before = fstatSync(fd, { bigint: true })
    const size = sizeOf(fd, before, path)
    if (size !== null && size > maxSize)
      throw new Failure(`${path} has ${size} bytes; the server's limit is ${maxSize}`)
    const bytes = bytesOf(fd, size ?? undefined, path)
    const sent = await send(size === null ? within(bytes, maxSize, path) : bytes)
    return hasChanged(fd, before) || (size !== null && sent < size)
      ? `${path} changed while it was read; ${sent} bytes were sent as read`
      : null
  } finally {
    closeSync(fd)
  }
}

async function fetchTree(order: FetchOrder, send: SendPieces): Promise<string | null> {
  const { path, follow = false, maxSize } = order
  const changed: string[] = []
  const root = inDirectoryOf(path, (directory, name) => {
    // A trailing / follows a symlink, as in other programs.
    const isFollowed = follow || path.endsWith('/')
    const stats = statsOf(directory, name, { ...order, follow: isFollowed })
    if (!stats.isDirectory()) throw new Failure(`${path} is ${kindOf(stats)}, not a directory`)
    return directory.child(name, isFollowed)
  })
  try {
    const roots = [{ directory: root, name: null, tarName: topName }]
    const tree = treeOf(roots, { follow, changedAt: (at) => changed.push(at) })
    await send(within(tree, maxSize, path))
  } finally {
    root.close()
  }
  if (changed.length === 0) return null
  return `${listed(changed)} changed while the tree was read; the copy may be inconsistent`
}

/** Fails beyond `maxBytes`, the server's limit. */
async function* within(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
  path: string,
): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > maxBytes) throw new Failure(`${path} has more than ${maxBytes} bytes, the server's limit`)
    yield piece
  }
}

function inDirectoryOf<T>(path: string, work: (directory: OpenDirectory, name: string) => T): T {
  const directory = OpenDirectory.open(dirname(path))
  try {
    return work(directory, basename(path) || '.')
  } finally {
    directory.close()
  }
}
