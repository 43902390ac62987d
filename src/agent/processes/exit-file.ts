import { readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessId } from './machine.ts'

/** Written in place of the exit code if the script never began. */
export const neverBegun = 'never'

/** File with /proc/PID/stat of the script's first process, written by the wrapper. */
export const leaderName = 'leader'

/** File with the message of the wrapper's shell about the signal that ended the script, such as `Killed`. */
export const deathName = 'death'

/** Bytes of the exit line, reserved before the start so that a full disk cannot lose it. */
const roomBytes = 48

/** How a script ended; `uptime` in seconds since boot. */
export interface Exit {
  readonly code: number
  readonly uptime: number
  /** A signal ended the script; shells do not report INT and PIPE. */
  readonly isDeath?: true
  /** The wrapper ended before the agent let it begin. */
  readonly isNever?: true
}

/** Reserves the exit line; blank means not ended. */
export function blankExit(fd: number): void {
  writeSync(fd, `${' '.repeat(roomBytes - 1)}\n`, 0)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** The recorded exit; null if the script has not ended. */
export function readExit(directory: string): Exit | null {
  const text = read(join(directory, 'exit'))
  if (text.startsWith(neverBegun)) return { code: 126, uptime: 0, isNever: true }
  const [, code, uptime] = /^(\d{1,3}) ([\d.]+)\n/.exec(text) ?? []
  if (code === undefined) return null
  const isDeath = Number(code) > 128 && read(join(directory, deathName)) !== ''
  return { code: Number(code), uptime: Number(uptime), ...(isDeath && { isDeath }) }
}

/** The script's first process, its session leader; null if unknown. */
export function leaderOf(directory: string): ProcessId | null {
  const text = read(join(directory, leaderName))
  const pid = Number.parseInt(text, 10)
  const startTime = Number(text.slice(text.lastIndexOf(') ') + 2).split(' ')[19])
  return pid > 0 && startTime > 0 ? { pid, startTime } : null
}
