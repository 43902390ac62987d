import { access, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { isDiskFull, writeFileDurably } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { auditFileName } from './audit/log-file.ts'
import { manifestName } from './store/files.ts'

/** In the data directory, beside the store: who loses the store keeps what says that there was one. */
export const markerName = 'used'
/** What only a server that was used has filled. */
const filledByUse = ['tasks', 'terminals', 'scripts', 'metrics']
/** The first user is in the first entries of the audit log. */
const auditStart = 64 * 1024

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}

async function isFilled(directory: string): Promise<boolean> {
  return readdir(directory).then(
    (names) => names.length > 0,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}

async function hasFirstUser(auditLog: string): Promise<boolean> {
  if (!(await isThere(auditLog))) return false
  const file = await open(auditLog, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(auditStart), 0, auditStart, 0)
    return buffer.toString('latin1', 0, bytesRead).includes('"action":"user.create"')
  } finally {
    await file.close()
  }
}

/** What in a data directory says that it was used, or null; older servers left no mark. */
async function signOfUse(path: string): Promise<string | null> {
  if (await isThere(join(path, markerName))) return markerName
  for (const name of filledByUse) if (await isFilled(join(path, name))) return `${name}/`
  const auditLog = join('audit', auditFileName)
  return (await hasFirstUser(join(path, auditLog))) ? auditLog : null
}

/**
 * A data directory that was used never starts with an empty store in place of its own (contract §11 "Data"). It was
 * used once its first user is on disk; what a first start left that was cut before that is no sign.
 * @throws RsmError `unavailable`
 */
export async function refuseWithoutStore(path: string): Promise<void> {
  if (await isThere(join(path, 'store', manifestName))) return
  const sign = await signOfUse(path)
  if (sign === null) return
  throw new RsmError(
    'unavailable',
    `the store is missing: there is no ${join(path, 'store', manifestName)}, but ${sign} in ${path} says that this data directory was used`,
    {
      hint: `nothing was changed; mount or bring back ${join(path, 'store')}, best with all of its data directory, or start in another directory with --data-dir`,
    },
  )
}

/** Notes that the first user is on disk. A full disk must not keep a server from starting: the next start notes it. */
export async function markUsed(path: string, storeId: string, log: Log): Promise<void> {
  const marker = join(path, markerName)
  if (await isThere(marker)) return
  await writeFileDurably(marker, `${storeId}\n`).catch((error: unknown) => {
    if (!isDiskFull(error)) throw error
    log.warn({ file: marker }, 'the disk is full: that this data directory is used could not be noted')
  })
}
