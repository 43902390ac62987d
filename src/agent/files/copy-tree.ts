import { Appender } from '../../disk/appender.ts'
import { refusedBy } from '../../disk/files/failure.ts'
import { putTree } from '../../disk/files/put-tree.ts'
import type { Copying } from './copy-file.ts'

/** Brings all of a tree to this host, before any of it is looked at: only then its sum is known. */
async function bring({ copy, server }: Copying, spool: number): Promise<void> {
  const text = new Appender(spool)
  const written = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      throw refusedBy(error, 'the tree in the data directory of the agent', 'write')
    })
  for await (const piece of server.receive(copy.file)) await written(text.write(piece))
  await written(text.end())
}

/** Puts a tree of the server in its place. `spool`: an empty file, open to be read and written. */
export async function copyTree(copying: Copying, spool: number): Promise<boolean> {
  await bring(copying, spool)
  return putTree(copying, spool)
}
