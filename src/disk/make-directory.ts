import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/**
 * Makes a directory that a user named, with what is missing above it, each of `mode`; one that is there stays as it is.
 * Node's own `recursive` never ends where a file system makes nothing and says that it is the parent that is missing, as
 * /proc does. Answers those that it made, from the top. Errors: those of mkdir(2).
 */
export function makeDirectory(path: string, mode = 0o777): string[] {
  const missing: string[] = []
  const made: string[] = []
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      mkdirSync(at, { mode })
      made.push(at)
      break
    } catch (error) {
      if (isDirectory(at)) break
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || at === dirname(at)) throw error
      missing.push(at)
    }
  }
  for (const at of missing.reverse()) {
    try {
      mkdirSync(at, { mode })
      made.push(at)
    } catch (error) {
      // Somebody else may have made it meanwhile.
      if (!isDirectory(at)) throw error
    }
  }
  return made
}

/** Removes directories that `makeDirectory` made, where nothing came into them. */
export function removeEmpty(made: readonly string[]): void {
  for (const directory of made.toReversed())
    try {
      rmdirSync(directory)
    } catch {
      // It is in use, or gone.
      return
    }
}
