import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** Identifies a process (proc(5)): its start in ticks since boot tells it from later users of its pid. */
export interface ProcessId {
  readonly pid: number
  readonly startTime: number
}

/** The agent's machine; tests reboot it. */
export interface Machine {
  bootId(): string
  /** Seconds since boot. */
  uptime(): number
}

/** Clock ticks of times that the kernel reports, on every Linux (USER_HZ, times(7)). */
export const ticksPerSecond = 100

/** Milliseconds. */
const endPoll = 250

let bootId: string | undefined

export const thisMachine: Machine = {
  /** Read once, because no process outlives its boot. */
  bootId() {
    bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return bootId
  },
  uptime: () => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]),
}

export interface ProcessStat extends ProcessId {
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Program name, at most 15 characters. */
  readonly command: string
  readonly isUninterruptible: boolean
  readonly isZombie: boolean
}

/** Errors that mean a process has ended or is hidden from this user. */
const absences = new Set<unknown>(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'])

/** Fields after the name, up to the start time. */
const wantedFields = 20

/** A line of /proc/PID/stat has at most 52 numbers and a name. */
const statLine = Buffer.allocUnsafeSlow(2048)

/** Cheaper than `readFileSync`, because a machine has thousands of processes. */
function readLine(path: string): string {
  const fd = openSync(path, 'r')
  try {
    return statLine.toString('utf8', 0, readSync(fd, statLine, 0, statLine.length, null))
  } finally {
    closeSync(fd)
  }
}

/** Null if the process does not exist. Throws if that is unknown (EMFILE). */
export function readStat(pid: number): ProcessStat | null {
  let text: string
  try {
    text = readLine(`/proc/${pid}/stat`)
  } catch (error) {
    if (error instanceof Error && 'code' in error && absences.has(error.code)) return null
    throw error
  }
  // The name in parentheses may itself contain spaces and parentheses.
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
    // A process whose main thread ended looks like a zombie, but is alive while other threads run.
    isZombie: (state === 'Z' || state === 'X') && Number(fields[17]) <= 1,
  }
}

export function startTimeOf(pid: number): number | null {
  return readStat(pid)?.startTime ?? null
}

/** Identity of a process, independent of later reuse of its pid; null if it does not exist. */
export function identify(pid: number): ProcessId | null {
  const startTime = startTimeOf(pid)
  return startTime === null ? null : { pid, startTime }
}

export function isAlive({ pid, startTime }: ProcessId): boolean {
  const stat = readStat(pid)
  return stat !== null && stat.startTime === startTime && !stat.isZombie
}

/** Real user of a process, unaffected by set-user-ID programs; null if it does not exist. */
export function realUidOf(pid: number): number | null {
  try {
    const [, uid] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
    return uid === undefined ? null : Number(uid)
  } catch {
    return null
  }
}

/**
 * Environment variable that all processes of an execution carry. It includes the journal's id, because agents
 * that share a machine, or a container and its host, may run the same task.
 */
export const tagVariable = 'RSM_EXECUTION'

export function tagOf(storeId: string, taskId: string): string {
  return `${storeId}/${taskId}`
}

/** Environment at the start of a process, each `NAME=value` between two NUL. */
export function startedWith(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`
  } catch {
    return ''
  }
}

/** Ends a process, with SIGKILL after `within` milliseconds. Never signals a later user of its pid. */
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

/** Where an execution was received: a copy of its files has another boot or directory. */
export interface Origin {
  readonly bootId: string
  /** Device and inode of its directory, which a rename keeps. */
  readonly directory: string
}

/** Null if it cannot be read: a failing disk must not keep the agent from starting. */
function identityOf(directory: string): string | null {
  try {
    const { dev, ino } = statSync(directory, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return null
  }
}

export function originOf(directory: string, machine: Machine): Origin {
  return { bootId: machine.bootId(), directory: identityOf(directory) ?? '' }
}

/** False for a copied directory. Older agents record none; without the directory nothing starts. */
export function isOriginal(
  { directory: noted }: { readonly directory?: string },
  directory: string,
): boolean {
  const found = noted === undefined ? null : identityOf(directory)
  return found === null || found === noted
}

/** Whether another agent may continue from the same files: copied, or the machine restarted or cloned. */
export function mayBeShared(origin: Origin | undefined, directory: string, machine: Machine): boolean {
  return origin !== undefined && (origin.bootId !== machine.bootId() || !isOriginal(origin, directory))
}
