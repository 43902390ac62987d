import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { readStat } from './machine.ts'

/** Soft limit of nearly every Linux; programs that need more raise it, because select(2) handles no more. */
const usualOpenFiles = 1024

const openFiles = /^Max open files +(\w+) +(\w+)/m

/** Linux's soft limits of process 1, by /proc/PID/limits line and prlimit(1) name; no hard limits. */
const usualLimits = [
  [/^Max core file size +(\w+) +(\w+)/m, 'core', 0],
  [/^Max stack size +(\w+) +(\w+)/m, 'stack', 8 * 1024 * 1024],
] as const

/** Read at load time, because the parent may exit. */
const atStart = startedWith()

const limitOpenFiles = Number.isFinite(atStart)
  ? `ulimit -S -n ${atStart} 2>/dev/null`
  : 'ulimit -S -n unlimited 2>/dev/null'

let lines: string | undefined

/**
 * Shell commands that reset OOM score, nice value, I/O class, CPUs and limits to those of process 1, so that scripts do not
 * inherit the agent's. Only for values that differ.
 */
export function usualAttributes(): string {
  lines ??= [limitOpenFiles, ...commands().map((command) => `{ ${command}; } >/dev/null 2>&1`)].join('\n')
  return lines
}

/** Uses process 1 of the host or container as the reference. */
function commands(): string[] {
  const [oomScore, processors] = [oomScoreOf(1), processorsOf(1)]
  return [
    ...(oomScore === oomScoreOf('self') ? [] : [`echo ${oomScore} >/proc/$$/oom_score_adj`]),
    ...(getPriority() === 0 ? [] : ['renice 0 -p $$']),
    ...(ioClassOf(1) === ioClassOf(process.pid) ? [] : ['ionice -c 0 -p $$']),
    ...(processors === processorsOf('self') ? [] : [`taskset -cp ${processors} $$`]),
    ...limitCommands(),
  ]
}

/** Raises limits of the agent that are below those defaults, as far as its rights allow. */
function limitCommands(): string[] {
  const word = (value: number) => (value === Number.POSITIVE_INFINITY ? 'unlimited' : String(value))
  return usualLimits.flatMap(([pattern, option, usualSoft]) => {
    const own = limitsOf('self', pattern)
    if (own === null) return []
    const hard = process.getuid?.() === 0 ? Number.POSITIVE_INFINITY : own.hard
    const soft = Math.min(Math.max(own.soft, usualSoft), hard)
    if (soft === own.soft && hard === own.hard) return []
    const permitted = Math.min(soft, own.hard)
    const set = (limits: string) => `prlimit --pid $$ --${option}=${limits}`
    // Root without CAP_SYS_RESOURCE raises no hard limit.
    return [`${set(`${word(soft)}:${word(hard)}`)} || ${set(`${word(permitted)}:`)}`]
  })
}

/** Soft and hard limit in a line of /proc/PID/limits (proc(5)). */
function limitsOf(pid: number | 'self', pattern: RegExp): { soft: number; hard: number } | null {
  try {
    const line = pattern.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))
    const number = (text: string | undefined) =>
      text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
    return line ? { soft: number(line[1]), hard: number(line[2]) } : null
  } catch {
    return null
  }
}

/**
 * The soft limit of open files for scripts and terminals: the one that the agent was started with, before Node raised it.
 * Read from the parent, unless that is systemd or has exited.
 */
function startedWith(): number {
  const parent = readStat(process.ppid)
  const isShell = parent !== null && parent.pid !== 1 && parent.command !== 'systemd'
  const soft = (isShell ? limitsOf(parent.pid, openFiles)?.soft : undefined) ?? usualOpenFiles
  return Math.min(soft, limitsOf('self', openFiles)?.hard ?? usualOpenFiles)
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
const processorsOf = (pid: number | 'self') =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(read(`/proc/${pid}/status`))?.[1]
const oomScoreOf = (pid: number | 'self') => read(`/proc/${pid}/oom_score_adj`).trim()
/** Empty if ionice(1) is not installed. */
const ioClassOf = (pid: number) =>
  spawnSync('ionice', ['-p', String(pid)], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
    .stdout ?? ''
