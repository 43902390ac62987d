import { once } from 'node:events'
import {
  chmodSync,
  constants,
  createWriteStream,
  existsSync,
  fstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { RsmError } from '../../core/errors.ts'
import { modeBits } from '../../disk/files/attributes.ts'
import { whyUnwritable } from '../../disk/named-files.ts'
import type { Sink } from './format.ts'
import { isOutdirName } from './outdir.ts'

/** Milliseconds to wait for the reader of a pipe, and between attempts. */
const readerWait = 5_000
const readerPause = 50

export interface OutputFile {
  readonly sink: Sink
  /** Completes the file; rejects if a write failed. */
  finish(): Promise<void>
  /** Discards the file; one that is replaced as a whole keeps its old version. */
  discard(): void
}

interface Place {
  readonly target: string
  /** Temporary path beside the target; renamed when complete. */
  readonly written: string
  readonly mode?: number
  readonly isPipe: boolean
}

interface Destinations {
  readonly files: readonly { readonly path: string }[]
  readonly outdir: string | undefined
  readonly onStdout: boolean
}

/**
 * Opens a file at once, before anything starts; a `whole` file is renamed into place when finished.
 * `patience`: milliseconds to wait for the reader of a pipe. Errors: `usage`.
 */
export function openOutputFile(path: string, whole: boolean, patience = readerWait): OutputFile {
  let fd: number
  let place: Place
  try {
    place = placeOf(path, whole)
    const flags = place.written === place.target ? 'w' : 'wx'
    fd = place.isPipe ? openPipe(place.written, patience) : openSync(place.written, flags)
  } catch (error) {
    throw new RsmError('usage', `can't write ${path}: ${whyNot(error as NodeJS.ErrnoException, path)}`)
  }
  const { target, written, mode, isPipe } = place
  const isApart = written !== target
  const remove = () => rmSync(written, { force: true })
  // Without another listener, a hangup would end the process without `exit`.
  const onHangUp = () => {
    remove()
    if (process.listenerCount('SIGHUP') === 0) process.kill(process.pid, 'SIGHUP')
  }
  const watchOver = () => {
    process.on('exit', remove)
    process.once('SIGHUP', onHangUp)
  }
  const letGo = () => {
    process.off('exit', remove)
    process.off('SIGHUP', onHangUp)
  }
  if (isApart) watchOver()
  const stream = streamInto(fd, isPipe)
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure = error
  })
  return {
    sink: {
      write(text) {
        if (failure !== undefined) throw failure
        if (text === '' || stream.write(text)) return
        return once(stream, 'drain').then(() => {})
      },
    },
    async finish() {
      if (failure !== undefined) throw failure
      stream.end()
      await finished(stream, { readable: false })
      if (mode !== undefined) chmodSync(written, mode)
      if (!isApart) return
      renameSync(written, target)
      letGo()
    },
    discard() {
      stream.destroy()
      if (!isApart) return
      remove()
      letGo()
    },
  }
}

/** Where to write. Pipes and devices cannot be replaced by a file, and that of `>(…)` has no other path. */
function placeOf(path: string, whole: boolean): Place {
  const known = statSync(path, { throwIfNoEntry: false })
  if (known?.isDirectory() === true) throw new Error('it is a directory')
  const isPipe = known?.isFIFO() === true
  if (!whole || known?.isFile() === false) return { target: path, written: path, isPipe }
  const target = known === undefined ? path : realpathSync(path)
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = `.${basename(target).slice(0, 200)}.${randomBytes(6).toString('hex')}.tmp`
  const written = join(dirname(target), temporary)
  const place = { target, written, isPipe }
  return known === undefined ? place : { ...place, mode: known.mode & modeBits }
}

/** Opens a pipe without blocking, because a blocking open would wait for its reader forever. */
function openPipe(path: string, patience: number): number {
  for (const until = performance.now() + patience; ; ) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error
      if (performance.now() >= until) throw new Error('the pipe has no reader', { cause: error })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, readerPause)
    }
  }
}

/** A blocked write to a pipe in a thread would keep the process alive despite signals, so use a socket. */
function streamInto(fd: number, isPipe: boolean): Writable {
  if (!isPipe) return createWriteStream('', { fd })
  const { Socket } = process.getBuiltinModule('node:net')
  return new Socket({ fd, readable: false, writable: true })
}

/** Names the path that was given instead of the temporary file. */
function whyNot(error: NodeJS.ErrnoException, path: string): string {
  if (error.code === 'ENOENT') return `directory ${dirname(path)} does not exist`
  return error.code === 'ENXIO' ? 'it is a socket' : whyUnwritable(error)
}

/** Refuses two destinations in one place: `same` and `./same`, a link, /dev/stdout. Errors: `usage`. */
export function refuseShared({ files, outdir, onStdout }: Destinations): void {
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
    // In a pipe, messages go between the lines; in a file, they would overwrite them.
    if (stats?.isFile() === true && place === idOf(fstatSync(2)))
      throw refused(`${path} is stderr, which gets the messages`)
    if (outdir !== undefined && isOutdirName(real) && dirname(real) === realPath(outdir))
      throw refused(`${path} has the name of a file in --outdir`)
  }
}

/** Whether stdout and stderr are one place: a terminal, a file, a shared pipe. */
export function areTogether(): boolean {
  return (process.stdout.isTTY && process.stderr.isTTY) || idOf(fstatSync(1)) === idOf(fstatSync(2))
}

/** Resolved path, even if only its directory exists. */
function realPath(path: string): string {
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
  } catch {
    return resolve(path)
  }
}

/** Whether two writers would corrupt it. They may share a terminal and /dev/null. */
const isSpoilt = (stats: Stats) => stats.isFile() || stats.isFIFO() || stats.isSocket()

const idOf = ({ dev, ino }: Stats) => `${dev}:${ino}`
