import { closeSync, readdirSync, readFileSync } from 'node:fs'
import { isSingleFile, ownPath } from '../../disk/own-files.ts'

/**
 * So that SIGUSR1 opens no debugger: Node 22.14 can be told and knows it from its first instruction, an older one learns
 * it from the first line of bin/run.js. A single file has it built in.
 */
const withoutDebugger = process.allowedNodeEnvironmentFlags.has('--disable-sigusr1')
  ? ['--disable-sigusr1']
  : []

/** O_CLOEXEC, as /proc/PID/fdinfo has it (proc(5)): octal. */
const closeOnExec = 0o2000000

/**
 * How to start rsm as a process of its own that does one thing for its agent. A single file by what the kernel has of it:
 * its path may hold another release by now.
 */
export function ownProcess(
  part: '__copy' | '__facts' | '__pty' | '__upgrade',
  ...argv: string[]
): { file: string; argv: string[] } {
  return isSingleFile
    ? { file: '/proc/self/exe', argv: [part, ...argv] }
    : { file: process.execPath, argv: [...withoutDebugger, ownPath('bin/run.js'), part, ...argv] }
}

/** As one word of a shell. */
export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** The same as one command that any process may exec, for as long as this process lives. */
export function ownCommand(part: '__copy' | '__upgrade', directory: string): string[] {
  const own = ownProcess(part, directory)
  return [own.file.replace('/proc/self/', `/proc/${process.pid}/`), ...own.argv]
}

/** The file that this process was started from, by which a package manager knows whether it is its own. */
export const installedFile = (): string => (isSingleFile ? process.execPath : ownPath('bin/run.js'))

/**
 * Closes the descriptors that whoever started this process left open, as `exec 200>lock` in a shell does: each script
 * would inherit them, whoever it runs as. Node opens none of its own without O_CLOEXEC. To be called first of all.
 */
export function closeInherited(): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name)
    if (fd <= 2) continue
    try {
      const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'))?.[1]
      if (flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0) closeSync(fd)
    } catch {
      // The descriptor of this very look, which is closed by now.
    }
  }
}
