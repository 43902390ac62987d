import { basename, dirname } from 'node:path'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import { Appender } from '../../disk/appender.ts'
import { attributesFor, losesSetIds } from '../../disk/files/attributes.ts'
import { Failure, refusedBy } from '../../disk/files/failure.ts'
import { OpenDirectory } from '../../disk/files/open-directory.ts'
import { putTree } from '../../disk/files/put-tree.ts'
import { sha256In, statReplaceable } from '../../disk/files/replacement.ts'
import { type Placing, settle } from '../../disk/files/settle.ts'
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
