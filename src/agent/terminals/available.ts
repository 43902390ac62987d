import { existsSync, readFileSync } from 'node:fs'
import { lackOfPlace, nativePath, placesOf } from './native.ts'

/** Whether this program is linked to musl, which the prebuilt module does not run on. */
function isMusl(): boolean {
  try {
    return readFileSync('/proc/self/maps', 'latin1').includes('/ld-musl-')
  } catch {
    return false
  }
}

/**
 * Why no terminal can be opened on this host, as a sentence; null where one can. By what is on disk: the native module
 * is loaded with the first terminal, and by another process. A single file puts it into `directory` for a moment.
 */
export function lackOfTerminal(directory: string): string | null {
  const onMusl = isMusl()
  const path = nativePath(onMusl)
  if (path === null)
    return `node-pty, which opens terminals, has no native module for ${process.platform}-${process.arch}${onMusl ? ' with musl' : ''}`
  if (!existsSync('/dev/ptmx')) return 'this host has no /dev/ptmx, which opens terminals'
  return lackOfPlace(placesOf(path, directory))
}
