import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const ticks = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** Seconds of processor time that a process has used. */
export function cpuOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticks
}

/** Seconds of processor time of PostgreSQL: the postmaster of this data directory and its children, including ended ones. */
export function cpuOfPostgres(dataDirectory: string): number {
  const postmaster = Number(readFileSync(`${dataDirectory}/postmaster.pid`, 'utf8').split('\n')[0])
  const text = readFileSync(`/proc/${postmaster}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  // The fields cutime and cstime: time of ended children.
  let seconds = cpuOf(postmaster) + (Number(fields[13]) + Number(fields[14])) / ticks
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
      if (parent === postmaster) seconds += cpuOf(Number(name))
    } catch {
      // The process has just ended.
    }
  }
  return seconds
}
