import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Mounts a disk of `bytes` bytes that a test can fill, with these options too; null if mounting is not permitted. */
export function mountSmallDisk(bytes: number, more = 'rw'): { directory: string; unmount(): void } | null {
  const directory = mkdtempSync(join(tmpdir(), 'rsm full-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},${more}`, 'tmpfs', directory], {
      stdio: 'ignore',
    })
  } catch {
    rmdirSync(directory)
    return null
  }
  return {
    directory,
    unmount() {
      execFileSync('umount', [directory])
      rmdirSync(directory)
    },
  }
}
