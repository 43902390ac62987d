import { fstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { isOutdirName } from './outdir.ts'

/** Its path without links, also where only the directory of it is there. */
function realPath(path: string): string {
  for (const [found, rest] of [
    [path, ''],
    [dirname(path), basename(path)],
  ] as const) {
    try {
      return join(realpathSync(found), rest)
    } catch {
      // What is wrong with it is told when it is opened.
    }
  }
  return resolve(path)
}

/** Two writers would spoil a file or a pipe. They may share a terminal and /dev/null. */
const isSpoilt = (stats: Stats) => stats.isFile() || stats.isFIFO() || stats.isSocket()

const isSame = (one: Stats, other: Stats | undefined) =>
  other !== undefined && one.dev === other.dev && one.ino === other.ino

/** Whether stdout and stderr are one place: a terminal, a file, a pipe that takes both. */
export function areTogether(): boolean {
  if (process.stdout.isTTY && process.stderr.isTTY) return true
  return isSame(fstatSync(1), fstatSync(2))
}

interface Wanted {
  readonly files: readonly { readonly path: string }[]
  readonly outdir: string | undefined
  readonly onStdout: boolean
}

/**
 * That each of what is written has a place of its own, however it is spelt: `same` and `./same`, a link, a second name,
 * /dev/stdout. Errors: `usage`.
 */
export function refuseShared({ files, outdir, onStdout }: Wanted): void {
  const refused = (message: string) => new RsmError('usage', message)
  const stdout = fstatSync(1)
  const stderr = fstatSync(2)
  const taken: { real: string; stats: Stats | undefined }[] = []
  for (const { path } of files) {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats !== undefined && !isSpoilt(stats)) continue
    const real = realPath(path)
    if (taken.some((other) => other.real === real || (stats !== undefined && isSame(stats, other.stats))))
      throw refused(`two formats can't go into one file: ${path}`)
    if (stats !== undefined && onStdout && isSame(stats, stdout))
      throw refused(`${path} is where stdout goes, which has a format already`)
    // In a pipe messages stand between the lines; in a file they would stand on them.
    if (stats?.isFile() === true && isSame(stats, stderr))
      throw refused(`${path} is where stderr goes, which has the messages`)
    if (outdir !== undefined && isOutdirName(real) && dirname(real) === realPath(outdir))
      throw refused(`${path} bears the name of a file of --outdir`)
    taken.push({ real, stats })
  }
}
