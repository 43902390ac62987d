import { access, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { isDiskFull, nullWhereMissing, writeFileDurably } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { auditFileName } from './audit-file.ts'
import { manifestName } from './store/files.ts'

/** Marker in the data directory, beside the store, so that it remains if the store is lost. */
export const markerName = 'used'
const filledByUse = ['tasks', 'terminals', 'scripts', 'metrics']
/** The first user is in the first entries of the audit log; bytes. */
const auditStart = 64 * 1024

async function isThere(path: string): Promise<boolean> {
  return (await access(path).catch(nullWhereMissing)) !== null
}

async function isFilled(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(nullWhereMissing)
  return names !== null && names.length > 0
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

/** Evidence in a data directory that it was used, or null; older servers left no marker. */
async function signOfUse(path: string): Promise<string | null> {
  if (await isThere(join(path, markerName))) return markerName
  for (const name of filledByUse) if (await isFilled(join(path, name))) return `${name}/`
  const auditLog = join('audit', auditFileName)
  return (await hasFirstUser(join(path, auditLog))) ? auditLog : null
}

/**
 * Keeps a used data directory from starting with an empty store in place of its own (contract §11 "Data"). It
 * counts as used once its first user is on disk; leftovers of an interrupted first start do not count.
 * @throws RsmError `unavailable`
 */
export async function refuseWithoutStore(path: string): Promise<void> {
  if (await isThere(join(path, 'store', manifestName))) return
  const sign = await signOfUse(path)
  if (sign === null) return
  throw new RsmError(
    'unavailable',
    `the store is missing: there is no ${join(path, 'store', manifestName)}, but ${sign} in ${path} shows that this data directory was used`,
    {
      hint: `nothing was changed; mount or restore ${join(path, 'store')}, preferably with its whole data directory, or name another one with --data-dir`,
    },
  )
}

/** Notes that the first user is on disk. A full disk must not prevent the start: the next one notes it. */
export async function markUsed(path: string, storeId: string, log: Log): Promise<void> {
  const marker = join(path, markerName)
  if (await isThere(marker)) return
  await writeFileDurably(marker, `${storeId}\n`).catch((error: unknown) => {
    if (!isDiskFull(error)) throw error
    log.warn({ file: marker }, 'the disk is full: cannot mark the data directory as used')
  })
}
