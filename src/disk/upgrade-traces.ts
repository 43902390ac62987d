import { existsSync, lchownSync, readFileSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { printable } from '../core/text/printable.ts'
import { syncDirectory, writeFileDurably } from './durable.ts'

/** Record of an upgrade in the data directory, kept from before the stop until a server is ready. */
export interface UpgradeRecord {
  readonly from: string
  readonly to: string
  /** Path of the executable to replace, and inode of the new one, which shows whether it is in place. */
  readonly executable: string
  readonly inode: number
  /** Command that starts the server; null without systemd. */
  readonly start: string | null
  readonly pid: number
  /** ISO 8601. */
  readonly startedAt: string
}

const recordPath = (dataDir: string) => join(dataDir, 'upgrade.json')
const outdatedStore = (dataDir: string) => join(dataDir, 'store.outdated')

/** Store of a version that did not become ready, about to be removed. */
export const failedStore = (dataDir: string): string => join(dataDir, 'store.of-failed-upgrade')

/** The store as the previous version left it, kept until a server is ready. */
export const keptStore = (dataDir: string): string => join(dataDir, 'store.before-upgrade')

/** Writes the record and gives it to the owner of the directory. */
export async function recordUpgrade(dataDir: string, record: UpgradeRecord): Promise<void> {
  await writeFileDurably(recordPath(dataDir), `${JSON.stringify(record)}\n`)
  const { uid, gid } = statSync(dataDir)
  lchownSync(recordPath(dataDir), uid, gid)
}

/**
 * Ends an upgrade once a server is ready, or runs as before: its store is no longer rolled back, and there is
 * nothing to report. Cheap without an upgrade.
 */
export async function endUpgrade(dataDir: string): Promise<void> {
  const outdated = outdatedStore(dataDir)
  for (const left of [outdated, failedStore(dataDir)]) await rm(left, { recursive: true, force: true })
  const isKept = await rename(keptStore(dataDir), outdated).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
  await rm(recordPath(dataDir), { force: true })
  if (!isKept) return
  await syncDirectory(dataDir)
  await rm(outdated, { recursive: true, force: true })
}

const startLines = /^systemctl (--user )?start [\w@.:-]+$/

/** Null without a readable record. The owner of the directory may have written anything, so validate it. */
function readRecord(dataDir: string): UpgradeRecord | null {
  try {
    const record = JSON.parse(readFileSync(recordPath(dataDir), 'utf8')) as Partial<UpgradeRecord> | null
    const { pid, inode, executable, start } = record ?? {}
    if (!Number.isSafeInteger(pid) || !Number.isSafeInteger(inode) || typeof executable !== 'string')
      return null
    const text = (value: unknown) => printable(String(value)).slice(0, 64)
    return {
      from: text(record?.from),
      to: text(record?.to),
      startedAt: text(record?.startedAt),
      executable,
      inode: inode as number,
      pid: pid as number,
      start: typeof start === 'string' && startLines.test(start) ? start : null,
    }
  } catch {
    return null
  }
}

/** An interrupted upgrade of a server that is not running, and how to continue; null without one. */
export function cutUpgrade(dataDir: string): { message: string; advice: string } | null {
  const record = readRecord(dataDir)
  if (record === null) return null
  const { from, to, executable, inode, start, pid, startedAt } = record
  const what = `the upgrade from rsm ${from} to ${to}, begun at ${startedAt},`
  if (existsSync(`/proc/${pid}`))
    return { message: `${what} is under way (pid ${pid})`, advice: 'wait until it ends' }
  const inPlace = statSync(executable, { throwIfNoEntry: false })?.ino === inode ? to : from
  const [store, kept] = [join(dataDir, 'store'), keptStore(dataDir)]
  // Interrupted between the two renames of the rollback.
  const first = !existsSync(store) && existsSync(kept) ? `\`mv ${kept} ${store}\`, then ` : ''
  const then = start === null ? 'start the server with its previous command line' : `\`${start}\``
  return {
    message: `${what} was interrupted, and no server is running`,
    advice: `${first}${then}: rsm ${inPlace} is installed`,
  }
}
