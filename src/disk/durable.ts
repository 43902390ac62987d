import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, open, readdir, rename, rm } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** Ends the name of a file that is still being written: whoever finds one after a crash may remove it. */
export const temporarySuffix = '.tmp'

/** Milliseconds; a younger temporary file may be another machine's work, on a shared disk. */
const staleAfter = 10 * 60_000

/** A name of its own beside `path`: two writers never share one (steno does, reliability "Facts that bite"). */
export function temporaryName(path: string): string {
  return `${path}.${process.pid}-${randomBytes(6).toString('hex')}${temporarySuffix}`
}

/** Makes the names in a directory last: a file created or renamed is durable only after this. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Puts a finished temporary file, already synced, in the place of `path`. */
export async function replaceDurably(temporary: string, path: string): Promise<void> {
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

/** Writes a whole file: after a crash at any moment there is the old one or the new one, never a part. */
export async function writeFileDurably(path: string, data: string | Uint8Array, mode = 0o600): Promise<void> {
  const temporary = temporaryName(path)
  try {
    const handle = await open(temporary, 'wx', mode)
    try {
      await handle.writeFile(data)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await replaceDurably(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Whether the disk has no room just now: the one fault of a disk that can pass. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}

/** Whether what a store refused was refused for that. */
export function isRefusedByFullDisk(error: unknown): boolean {
  return error instanceof Error && isDiskFull(error.cause)
}

/** Removes what a killed process left half written under a name that `temporaryName(path)` made. */
export async function removeStale(path: string): Promise<void> {
  const [directory, base] = [dirname(path), `${basename(path)}.`]
  for (const name of await readdir(directory).catch(() => [])) {
    const [, pid] = (name.startsWith(base) && /^(\d+)-[0-9a-f]{12}\.tmp$/.exec(name.slice(base.length))) || []
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    const left = join(directory, name)
    const found = await lstat(left).catch(() => null)
    if (found === null || Date.now() - found.mtimeMs < staleAfter) continue
    // Who may not remove it can still work beside it.
    await rm(left, { recursive: true, force: true }).catch(() => undefined)
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends the process with a signal's exit code, once `remove` has removed what it would leave half written; answers how to stop that. */
export function removeOnSignal(remove: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    remove()
    process.exit(128 + constants.signals[signal])
  }
  for (const signal of signals) process.on(signal, onSignal)
  return () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
}
