import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeNamedDirectory } from './named-path.ts'

/** Administrator's password of a quickstart; created once and stored in its data directory with mode 0600. */
export function quickstartPassword(directory: string): { password: string; path: string } {
  makeNamedDirectory(directory, '--data-dir', 0o700)
  const path = join(directory, 'admin-password')
  try {
    return { password: readFileSync(path, 'utf8').trim(), path }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    const password = randomBytes(18).toString('base64url')
    writeFileSync(path, `${password}\n`, { mode: 0o600, flag: 'wx' })
    return { password, path }
  }
}
