import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

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

/** Milliseconds between two looks at a process that is ending. */
const endPoll = 250

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

/** A line of /proc/PID/stat is at most 52 numbers and a name. */
const statLine = Buffer.allocUnsafeSlow(2048)

/** Without what `readFileSync` does beside: a machine has thousands of processes. */
function readLine(path: string): string {
  const fd = openSync(path, 'r')
  try {
    return statLine.toString('utf8', 0, readSync(fd, statLine, 0, statLine.length, null))
  } finally {
    closeSync(fd)
  }
}

/** Null when there is no such process any more. Throws when that can't be told (EMFILE). */
export function readStat(pid: number): ProcessStat | null {
  let text: string
  try {
    text = readLine(`/proc/${pid}/stat`)
  } catch (error) {
    if (error instanceof Error && 'code' in error && absences.has(error.code)) return null
    throw error
  }
  // The name stands in parentheses and may itself hold spaces and parentheses.
  const end = text.lastIndexOf(')')
  const fields = text.slice(end + 2).split(' ', wantedFields)
  const [state, parent, group, session] = fields
  return {
    pid,
    startTime: Number(fields[19]),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    command: text.slice(text.indexOf('(') + 1, end),
    isUninterruptible: state === 'D',
    // With threads that go on, a process whose first thread has ended looks like a zombie and is none.
    isZombie: (state === 'Z' || state === 'X') && Number(fields[17]) <= 1,
  }
}

/** Null when there is no such process any more. */
export function startTimeOf(pid: number): number | null {
  return readStat(pid)?.startTime ?? null
}

/** A process from now on, whoever has its pid later; null when it is gone already. */
export function identify(pid: number): ProcessId | null {
  const startTime = startTimeOf(pid)
  return startTime === null ? null : { pid, startTime }
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
export const tagVariable = 'RSM_EXECUTION'

export function tagOf(storeId: string, taskId: string): string {
  return `${storeId}/${taskId}`
}

/** The environment that a process was started with, each `NAME=value` between two NUL. */
export function startedWith(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`
  } catch {
    return ''
  }
}

/** Ends a process, by SIGKILL after `within` milliseconds. Never signals another process that has its pid by now. */
export async function endProcess(id: ProcessId, within = 15_000): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(id)) return
    try {
      process.kill(id.pid, signal)
    } catch {
      return
    }
    for (let waited = 0; waited < within && isAlive(id); waited += endPoll) await pause(endPoll)
  }
}
