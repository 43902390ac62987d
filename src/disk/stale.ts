import { existsSync } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** What is younger may be another machine's work, on a shared disk; milliseconds. */
const staleAfter = 10 * 60_000

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
