import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

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
 * is loaded with the first session, and by another process.
 */
export function lackOfTerminal(): string | null {
  let directory: string
  try {
    directory = dirname(createRequire(import.meta.url).resolve('node-pty/package.json'))
  } catch {
    return 'node-pty is not installed with this agent'
  }
  const isBuilt = existsSync(join(directory, 'build/Release/pty.node'))
  const platform = `${process.platform}-${process.arch}`
  const isPrebuilt = !isMusl() && existsSync(join(directory, 'prebuilds', platform, 'pty.node'))
  if (!isBuilt && !isPrebuilt)
    return `node-pty, which opens terminals, has no native module for ${platform}${isMusl() ? ' with musl' : ''}`
  if (!existsSync('/dev/ptmx')) return 'this host has no /dev/ptmx, which opens terminals'
  return null
}
