import { once } from 'node:events'
import { chmodSync, createWriteStream, openSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { finished } from 'node:stream/promises'
import { RsmError } from '../../core/errors.ts'
import type { Sink } from './sink.ts'

/** The FILE of `-o FORMAT=FILE`. */
export interface OutputFile {
  readonly sink: Sink
  /** All of it is there; rejects when something could not be written. */
  finish(): Promise<void>
  /** Nothing came of it: of a file that is written whole the former one stays. */
  discard(): void
}

interface Place {
  readonly target: string
  /** Another name beside it, where it takes its own when it is complete. */
  readonly written: string
  readonly mode?: number
}

/** Where it is written. A pipe or a device can't be replaced by a file of that name, and that of `>(…)` has no other path. */
function placeOf(path: string, whole: boolean): Place {
  const known = statSync(path, { throwIfNoEntry: false })
  if (known?.isDirectory() === true) throw new Error('it is a directory')
  if (!whole || known?.isFile() === false) return { target: path, written: path }
  const target = known === undefined ? path : realpathSync(path)
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = `.${basename(target).slice(0, 200)}.${randomBytes(6).toString('hex')}.tmp`
  const written = join(dirname(target), temporary)
  return known === undefined ? { target, written } : { target, written, mode: known.mode & 0o777 }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'you may not',
  EPERM: 'you may not',
  ENOTDIR: 'a part of this path is a file',
  EROFS: 'what is mounted there is read-only',
  ENOSPC: 'the disk is full',
}

/** In words that name what was typed, and not the file of a passing name beside it. */
function whyNot({ code, message }: NodeJS.ErrnoException, path: string): string {
  if (code === undefined) return message
  if (code === 'ENOENT') return `directory ${dirname(path)} does not exist`
  return reasons[code] ?? code
}

/**
 * Opens it for writing, at once, so that a mistake is told before anything is started; a `whole` file takes its name when it
 * is finished. Errors: `usage`.
 */
export function openOutputFile(path: string, whole: boolean): OutputFile {
  let fd: number
  let place: Place
  try {
    place = placeOf(path, whole)
    fd = openSync(place.written, place.written === place.target ? 'w' : 'wx')
  } catch (error) {
    throw new RsmError('usage', `can't write ${path}: ${whyNot(error as NodeJS.ErrnoException, path)}`)
  }
  const { target, written, mode } = place
  const isApart = written !== target
  const remove = () => rmSync(written, { force: true })
  // A hang-up ends a process without `exit`, unless somebody listens.
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
  const stream = createWriteStream('', { fd })
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
      await finished(stream)
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
