import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

/** What a process is told apart by (proc(5)): its start in ticks since boot makes a reused pid another process. */
export interface ProcessId {
  readonly pid: number
  readonly startTime: number
}

/** The machine under the agent; tests reboot it. */
export interface Machine {
  bootId(): string
  /** Seconds since boot. */
  uptime(): number
}

/** In which the kernel tells times to programs, on every Linux there is (USER_HZ, times(7)). */
export const ticksPerSecond = 100

let bootId: string | undefined

export const thisMachine: Machine = {
  /** Read once: no process outlives its boot. */
  bootId() {
    bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return bootId
  },
  uptime: () => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]),
}

/** A line of /proc/PID/stat. */
export interface ProcessStat extends ProcessId {
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Its program's name, at most 15 characters. */
  readonly command: string
  readonly isUninterruptible: boolean
  readonly isZombie: boolean
}

/** What reading about a process says when it has ended, or is hidden from this user. */
const absences = new Set<unknown>(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'])

/** Behind the name: the last is the start time. */
const wantedFields = 20

/** A line of /proc/PID/stat is at most 52 numbers and a name; an environment mostly fits too. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Into the buffer, without what `readFileSync` does beside: a machine has thousands of processes. Answers how much. */
function readStart(path: string): number {
  const fd = openSync(path, 'r')
  try {
    return readSync(fd, buffer, 0, buffer.length, null)
  } finally {
    closeSync(fd)
  }
}

const parentheses = { open: 0x28, close: 0x29 }

/** Null when there is no such process any more. Throws when that can't be told (EMFILE). */
export function readStat(pid: number): ProcessStat | null {
  let length: number
  try {
    length = readStart(`/proc/${pid}/stat`)
  } catch (error) {
    if (error instanceof Error && 'code' in error && absences.has(error.code)) return null
    throw error
  }
  // The name stands in parentheses and may itself hold spaces and parentheses.
  const end = buffer.lastIndexOf(parentheses.close, length - 1)
  const fields = buffer.toString('latin1', end + 2, length).split(' ', wantedFields)
  const [state, parent, group, session] = fields
  return {
    pid,
    startTime: Number(fields[19]),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    command: buffer.toString('utf8', buffer.indexOf(parentheses.open) + 1, end),
    isUninterruptible: state === 'D',
    // With threads that go on, a process whose first thread has ended looks like a zombie and is none.
    isZombie: (state === 'Z' || state === 'X') && Number(fields[17]) <= 1,
  }
}

/** Null when there is no such process any more. */
export function startTimeOf(pid: number): number | null {
  return readStat(pid)?.startTime ?? null
}

export function isAlive({ pid, startTime }: ProcessId): boolean {
  const stat = readStat(pid)
  return stat !== null && stat.startTime === startTime && !stat.isZombie
}

/** The user who started a process, whatever it has become by a set-user-ID program; null when it is gone. */
export function realUidOf(pid: number): number | null {
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
    return uid === undefined ? null : Number(uid)
  } catch {
    return null
  }
}

/**
 * The environment variable that all processes of an execution carry. It names the journal too, as agents that share a
 * machine, or a container and its host, run the same task.
 */
export const markVariable = 'RSM_EXECUTION'

export function markOf(storeId: string, taskId: string): string {
  return `${storeId}/${taskId}`
}

/** The environment that a process was started with, each `NAME=value` between two NUL. */
export function startedWith(pid: number): string {
  const path = `/proc/${pid}/environ`
  try {
    const length = readStart(path)
    return `\0${length < buffer.length ? buffer.toString('latin1', 0, length) : readFileSync(path, 'latin1')}`
  } catch {
    return ''
  }
}
