import { existsSync, lchownSync, readFileSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { printable } from '../core/text/printable.ts'
import { syncDirectory, writeFileDurably } from './durable.ts'

/** What `rsm server upgrade` keeps of itself in the data directory, from before the stop until a server is ready there. */
export interface UpgradeRecord {
  readonly from: string
  readonly to: string
  /** Whose place the new executable takes, and the inode of the new one, which tells whether it has. */
  readonly executable: string
  readonly inode: number
  /** What starts the server; null where that is not systemd. */
  readonly start: string | null
  /** Of the process that carries it out. */
  readonly pid: number
  /** ISO 8601. */
  readonly startedAt: string
}

const recordPath = (dataDir: string) => join(dataDir, 'upgrade.json')
const outdatedStore = (dataDir: string) => join(dataDir, 'store.outdated')

/** That of a version that did not become ready, on its way out. */
export const failedStore = (dataDir: string): string => join(dataDir, 'store.of-failed-upgrade')

/** The store as the former version left it, until a server is ready. */
export const keptStore = (dataDir: string): string => join(dataDir, 'store.before-upgrade')

/** Belongs to the user of the directory, whoever writes it. */
export async function recordUpgrade(dataDir: string, record: UpgradeRecord): Promise<void> {
  await writeFileDurably(recordPath(dataDir), `${JSON.stringify(record)}\n`)
  const { uid, gid } = statSync(dataDir)
  lchownSync(recordPath(dataDir), uid, gid)
}

/**
 * A server is ready, or runs as before: from this moment on its store counts and is not taken back, and nothing is to be
 * told of an upgrade. Cheap where there was none.
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

/** Null where there is none that can be read. The user of the directory may have written anything. */
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

/** Where no server runs: that an upgrade of it was cut, and how to go on; null where none was. */
export function cutUpgrade(dataDir: string): { message: string; advice: string } | null {
  const record = readRecord(dataDir)
  if (record === null) return null
  const { from, to, executable, inode, start, pid, startedAt } = record
  const what = `the upgrade from rsm ${from} to ${to}, begun at ${startedAt},`
  if (existsSync(`/proc/${pid}`))
    return { message: `${what} is under way (pid ${pid})`, advice: 'wait until it has ended' }
  const inPlace = statSync(executable, { throwIfNoEntry: false })?.ino === inode ? to : from
  const [store, kept] = [join(dataDir, 'store'), keptStore(dataDir)]
  // Between two renames of the way back.
  const first = !existsSync(store) && existsSync(kept) ? `\`mv ${kept} ${store}\`, then ` : ''
  const then = start === null ? 'start the server with the words that it had' : `\`${start}\``
  return {
    message: `${what} was cut, and no server runs`,
    advice: `${first}${then}: rsm ${inPlace} is in its place`,
  }
}
