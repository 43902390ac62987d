import { readFileSync } from 'node:fs'
import { readStat } from './machine.ts'

/** What nearly every Linux starts programs with; more is for those that ask for it, as select(2) takes no more. */
const usual = 1024

/** The soft and the hard limit of open files, of a line of proc(5) limits. */
function limitsOf(pid: number | 'self'): { soft: number; hard: number } | null {
  try {
    const line = /^Max open files +(\w+) +(\w+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))
    const number = (text: string | undefined) =>
      text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
    return line ? { soft: number(line[1]), hard: number(line[2]) } : null
  } catch {
    return null
  }
}

/**
 * The soft limit of open files that scripts and terminals get: the one that this program was started with, which Node has
 * raised since. Whoever started it has it still, unless that is systemd or gone.
 */
function startedWith(): number {
  const parent = readStat(process.ppid)
  const isShell = parent !== null && parent.pid !== 1 && parent.command !== 'systemd'
  const soft = (isShell ? limitsOf(parent.pid)?.soft : undefined) ?? usual
  return Math.min(soft, limitsOf('self')?.hard ?? usual)
}

/** Found out before whoever started it can end. */
const atStart = startedWith()

/** A line of sh that sets it. */
export const limitOpenFiles: string = Number.isFinite(atStart)
  ? `ulimit -S -n ${atStart} 2>/dev/null`
  : 'ulimit -S -n unlimited 2>/dev/null'
