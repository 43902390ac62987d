import { existsSync, fstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import { isOutdirName } from './outdir.ts'

/** Its path without links, also if only its directory exists. */
function realPath(path: string): string {
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
  } catch {
    return resolve(path)
  }
}

/** Two writers would spoil a file or a pipe. They may share a terminal and /dev/null. */
const isSpoilt = (stats: Stats) => stats.isFile() || stats.isFIFO() || stats.isSocket()

const idOf = ({ dev, ino }: Stats) => `${dev}:${ino}`

/** Whether stdout and stderr are one place: a terminal, a file, a pipe that takes both. */
export function areTogether(): boolean {
  return (process.stdout.isTTY && process.stderr.isTTY) || idOf(fstatSync(1)) === idOf(fstatSync(2))
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
  const taken = new Set<string>()
  for (const { path } of files) {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats !== undefined && !isSpoilt(stats)) continue
    const real = realPath(path)
    const place = stats === undefined ? real : idOf(stats)
    if (taken.has(place)) throw refused(`two formats can't go into one file: ${path}`)
    taken.add(place)
    if (onStdout && place === idOf(fstatSync(1)))
      throw refused(`${path} is stdout, which already has a format`)
    // In a pipe messages stand between the lines; in a file they would stand on them.
    if (stats?.isFile() === true && place === idOf(fstatSync(2)))
      throw refused(`${path} is stderr, which gets the messages`)
    if (outdir !== undefined && isOutdirName(real) && dirname(real) === realPath(outdir))
      throw refused(`${path} has the name of a file in --outdir`)
  }
}
