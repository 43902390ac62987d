import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { dlopen } from 'node:process'
import { hasOwnFile, isSingleFile, ownFile, ownPath } from '../../disk/own-files.ts'
import { allowsExec } from '../processes/file-systems.ts'

/** Native modules of node-pty, copied here by the build: compiled on this machine, or shipped by node-pty. */
const compiled = 'dist/native/compiled.node'
const shipped = `dist/native/${process.platform}-${process.arch}.node`

/** Linux's O_TMPFILE, missing in Node. It includes O_DIRECTORY, which differs between architectures. */
const nameless = 0o20000000 | constants.O_DIRECTORY
/** Directories for the unnamed file; some may be missing or noexec. */
const elsewhere = ['/dev/shm', '/run', '/tmp', '/var/tmp']

/**
 * The native part of node-pty, used directly. Its classes destroy the terminal 200 ms after the program's
 * exit, even if output is unread. They also busy-loop while the program does not read its input. Neither can
 * be turned off.
 */
export interface Native {
  fork(
    file: string,
    args: readonly string[],
    env: readonly string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    isUtf8: boolean,
    helperPath: string,
    exited: (exitCode: number, signal: number) => void,
  ): { fd: number; pid: number; pty: string }
  resize(fd: number, cols: number, rows: number, pixelWidth: number, pixelHeight: number): void
}

/** Loads node-pty's native module; a single file first tries to unpack it in `directory`. */
export function loadNative(directory: string): Native {
  const path = nativePath(false)
  if (path === null) throw new Error(`this rsm was built without the native module of node-pty (${shipped})`)
  if (isSingleFile) return loadNameless(ownFile(path), directory) as Native
  const loaded = { exports: {} }
  dlopen(loaded, ownPath(path))
  return loaded.exports as Native
}

/** Loads a module of a single file through an unnamed file, which cannot be seen, swapped or left behind. */
function loadNameless(bytes: Buffer, directory: string): unknown {
  const places = [directory, ...elsewhere]
  let failure = ''
  for (const where of places) {
    let fd: number | undefined
    try {
      fd = openSync(where, nameless | constants.O_RDWR, 0o700)
      for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written)
      const loaded = { exports: {} }
      dlopen(loaded, `/proc/self/fd/${fd}`)
      return loaded.exports
    } catch (error) {
      failure ||= (error as Error).message
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }
  throw new Error(lackOfPlace(places) ?? `the native module of node-pty cannot be loaded: ${failure}`)
}

/** Path within the package; null if this machine has none. The shipped module does not run on musl. */
function nativePath(isMusl: boolean): string | null {
  if (hasOwnFile(compiled)) return compiled
  return !isMusl && hasOwnFile(shipped) ? shipped : null
}

/**
 * Reason why this host cannot open terminals, as a sentence; null if it can. Checks files only, because
 * another process loads the module with the first terminal. A single file unpacks it in `directory`.
 */
export function lackOfTerminal(directory: string): string | null {
  const onMusl = isMusl()
  const path = nativePath(onMusl)
  if (path === null)
    return `node-pty, which opens terminals, has no native module for ${process.platform}-${process.arch}${onMusl ? ' with musl' : ''}`
  if (!existsSync('/dev/ptmx')) return 'this host has no /dev/ptmx, which opens terminals'
  return lackOfPlace(placesOf(path, directory))
}

/** Whether this program is linked to musl, which the shipped module does not run on. */
function isMusl(): boolean {
  try {
    return readFileSync('/proc/self/maps', 'latin1').includes('/ld-musl-')
  } catch {
    return false
  }
}

/** Directories to load the native module at `path` from; a single file tries `directory` first. */
export const placesOf = (path: string, directory: string): string[] =>
  isSingleFile ? [directory, ...elsewhere] : [dirname(ownPath(path))]

/** Reason why none of these directories can hold the native module, as a sentence; null if one can. */
export function lackOfPlace(places: readonly string[], isWritten = isSingleFile): string | null {
  const takes = (place: string) => {
    try {
      accessSync(place, isWritten ? constants.W_OK : constants.R_OK)
      return allowsExec(place)
    } catch {
      return false
    }
  }
  if (places.some(takes)) return null
  const rule = isWritten
    ? 'a directory that is writable and not mounted noexec'
    : 'a directory that is not mounted noexec'
  return `terminals need ${rule}, unlike ${places.join(', ')}: remount one with exec and restart the agent`
}
