import { randomBytes } from 'node:crypto'
import { copyFile, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'

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
