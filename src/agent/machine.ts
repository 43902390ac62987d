import { readdirSync, readFileSync } from 'node:fs'

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

export const thisMachine: Machine = {
  bootId: () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
  uptime: () => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]),
}

interface ProcessStat extends ProcessId {
  readonly parent: number
  readonly session: number
  readonly isZombie: boolean
}

function readStat(pid: number): ProcessStat | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // The name stands in parentheses and may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    startTime: Number(fields[19]),
    parent: Number(fields[1]),
    session: Number(fields[3]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  }
}

/** Null when there is no such process any more. */
export function startTimeOf(pid: number): number | null {
  return readStat(pid)?.startTime ?? null
}

/** The name of a process's program, at most 15 characters; empty when it is gone. */
export function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1').trim()
  } catch {
    return ''
  }
}

export function isAlive({ pid, startTime }: ProcessId): boolean {
  const stat = readStat(pid)
  return stat !== null && stat.startTime === startTime && !stat.isZombie
}

function carries(pid: number, variable: string): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${variable}\0`)
  } catch {
    return false
  }
}

function allProcesses(): ProcessStat[] {
  const found: ProcessStat[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = readStat(Number(name))
    if (stat && !stat.isZombie && stat.pid !== process.pid) found.push(stat)
  }
  return found
}

/**
 * The processes of an execution where no cgroup holds them: its session, all descendants, and whatever else carries
 * its RSM_EXECUTION_ID, which finds most of those that detached themselves. RSM_TASK_ID would not do: where a machine
 * has several agents, each has a part of the same task.
 */
export function processesOf(executionId: string, root: ProcessId | null): ProcessId[] {
  const all = allProcesses()
  const members = new Set<number>()
  // The number of a session whose leader is gone stays taken, unless nobody is left in it: then it may name another.
  const isReused = all.some(({ pid, startTime }) => pid === root?.pid && startTime !== root.startTime)
  for (const stat of all) {
    const isOfSession = root !== null && !isReused && (stat.pid === root.pid || stat.session === root.pid)
    if (isOfSession || carries(stat.pid, `RSM_EXECUTION_ID=${executionId}`)) members.add(stat.pid)
  }
  for (let grew = true; grew; ) {
    grew = false
    for (const stat of all)
      if (members.has(stat.parent) && !members.has(stat.pid)) {
        members.add(stat.pid)
        grew = true
      }
  }
  return all.filter((stat) => members.has(stat.pid))
}

/** The wrapper of an execution whose pid was not written down before the agent died: the leader of its session. */
export function wrapperOf(executionId: string): ProcessId | null {
  const leaders = allProcesses().filter((stat) => stat.session === stat.pid)
  return leaders.find((stat) => carries(stat.pid, `RSM_EXECUTION_ID=${executionId}`)) ?? null
}
