import { accessSync, closeSync, constants, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isSingleFile, ownPath } from '../../disk/own-files.ts'

/**
 * Keeps SIGUSR1 from opening a debugger: Node 22.14 has an option that applies from the start; for older
 * versions, bin/run.js does it in its first line. A single file has it built in.
 */
const withoutDebugger = process.allowedNodeEnvironmentFlags.has('--disable-sigusr1')
  ? ['--disable-sigusr1']
  : []

/** O_CLOEXEC in /proc/PID/fdinfo (proc(5)): octal. */
const closeOnExec = 0o2000000

/**
 * Command that starts rsm as a child process with one job for its agent. A single file runs the kernel's
 * copy, because its path may hold another release by now.
 */
export function ownProcess(
  part: '__copy' | '__facts' | '__pty' | '__upgrade',
  ...argv: string[]
): { file: string; argv: string[] } {
  return isSingleFile
    ? { file: '/proc/self/exe', argv: [part, ...argv] }
    : { file: process.execPath, argv: [...withoutDebugger, ownPath('bin/run.js'), part, ...argv] }
}

export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** The same as one command that any process may exec while this process lives. */
export function ownCommand(part: '__copy' | '__upgrade', directory: string): string[] {
  const own = ownProcess(part, directory)
  return [own.file.replace('/proc/self/', `/proc/${process.pid}/`), ...own.argv]
}

/** Path that this process was started from; a package manager uses it to recognize its own file. */
export const installedFile = (): string => (isSingleFile ? process.execPath : ownPath('bin/run.js'))

/**
 * Closes descriptors inherited from the parent, such as `exec 200>lock` in a shell: otherwise scripts would
 * inherit them, whatever user they run as. Node opens its own with O_CLOEXEC. Call it first.
 */
export function closeInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    if (fd <= 2) continue
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'))?.[1]
      if (flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(fd)
    } catch {
      // The descriptor of this directory listing, already closed.
    }
  }
}

/** PATH of every script; the agent looks up its own programs there too. */
export const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Cache of found programs, because most directories of the path have none. */
const places = new Map<string, string>()

export function findInPath(name: string): string | undefined {
  const place = places.get(name)
  if (place !== undefined && isExecutable(place)) return place
  const found = searchPath
    .split(':')
    .map((directory) => join(directory, name))
    .find(isExecutable)
  if (found !== undefined) places.set(name, found)
  return found
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
