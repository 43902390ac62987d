import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type ReleaseSignature, readReleaseSignature } from '../core/release.ts'
import { isReleaseSigned } from './own-release.ts'

// The steps that upgrades of agents and of servers share.

const run = promisify(execFile)
/** Milliseconds for a package manager to answer. */
const patience = 60_000

/**
 * The signature of the executable with this checksum, if `key` made it; otherwise the reason why not. `given`:
 * a `.sig`, as text or parsed.
 */
export function signedRelease(
  key: string,
  given: unknown,
  sha256: string,
): ReleaseSignature | 'malformed' | 'other file' | 'other key' {
  const release = readReleaseSignature(given)
  if (release === null) return 'malformed'
  if (release.sha256 !== sha256) return 'other file'
  return isReleaseSigned(key, release) ? release : 'other key'
}

/** The package manager that owns a file, and must therefore upgrade it; null if none does. */
export async function packageManagerOf(file: string): Promise<'dpkg' | 'rpm' | null> {
  const succeeds = (program: string, ...words: string[]) =>
    run(program, [...words, file], { timeout: patience }).then(
      () => true,
      () => false,
    )
  if (await succeeds('dpkg-query', '--search')) return 'dpkg'
  return (await succeeds('rpm', '--query', '--file')) ? 'rpm' : null
}

/** Writes a new executable durably; resolves to its SHA-256, which the caller must check before it runs the file. */
export async function writeExecutable(
  pieces: AsyncIterable<Buffer>,
  path: string,
  mode: number,
): Promise<string> {
  const hash = createHash('sha256')
  const file = await open(path, 'wx', mode)
  try {
    for await (const piece of pieces) {
      hash.update(piece)
      await file.writeFile(piece)
    }
    // Undo the umask.
    await file.chmod(mode)
    await file.sync()
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}
