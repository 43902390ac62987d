import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupPids } from './cgroups.ts'
import { leaderOf } from './exit-file.ts'
import { type ProcessStat, readStat } from './machine.ts'
import type { Tree } from './processes.ts'

/** A process that may still write to the output of a script that has ended. */
export interface Writer extends Pick<ProcessStat, 'pid' | 'startTime' | 'command' | 'isUninterruptible'> {
  /** False if access to its descriptors is denied: then only membership of the session is known. */
  readonly isSeen: boolean
}

/** Descriptors inspected per process: the lowest, where output usually is. */
const maxDescriptors = 64
const spools = ['stdout', 'stderr'] as const
/** Milliseconds. For a younger script, only PIDs above its wrapper's are scanned, because they are few. */
const fewPids = 60_000
/** Scans repeated at most while a process vanishes meanwhile, because it may have passed its output on. */
const maxScans = 3

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? ''
const isDenied = (error: unknown) => ['EACCES', 'EPERM'].includes(codeOf(error))

/**
 * The file behind a descriptor open for writing; null if there is none, or it was closed meanwhile. Opens
 * nothing, because a network file system may hang.
 */
function writtenTo(pid: number, fd: number): string | null {
  try {
    const path = readlinkSync(`/proc/${pid}/fd/${fd}`)
    if (!/\/std(out|err)( \(deleted\))?$/.test(path)) return null
    const flags = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1')
    return /^flags:\s*\d*[04]$/m.test(flags) ? null : path
  } catch (error) {
    if (isDenied(error)) throw error
    return null
  }
}

/** Files that a process has open for writing, of those named like a spool; `denied`, or `gone` if it has ended. */
function writtenBy(pid: number): string[] | 'denied' | 'gone' {
  try {
    const fds = readdirSync(`/proc/${pid}/fd`).map(Number)
    const lowest = fds.sort((a, b) => a - b).slice(0, maxDescriptors)
    return lowest.flatMap((fd) => writtenTo(pid, fd) ?? [])
  } catch (error) {
    if (isDenied(error)) return 'denied'
    if (['ENOENT', 'ESRCH'].includes(codeOf(error))) return 'gone'
    throw error
  }
}

/** Null if it does not exist. */
function realPathOf(directory: string): string | null {
  try {
    return realpathSync(directory)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

interface Scan {
  /** By directory. */
  readonly writers: Map<string, Writer[]>
  readonly hasVanished: boolean
}

function scan(pids: readonly number[], directories: readonly string[]): Scan {
  const files = new Map<string, string>()
  const leaders = new Map<number, { directory: string; startTime: number }>()
  for (const directory of directories) {
    const path = realPathOf(directory)
    if (path === null) continue
    for (const name of spools) files.set(join(path, name), directory)
    const leader = leaderOf(directory)
    if (leader !== null) leaders.set(leader.pid, { directory, startTime: leader.startTime })
  }
  const writers = new Map<string, Writer[]>()
  let hasVanished = false
  for (const pid of pids) {
    if (pid === process.pid) continue
    const written = writtenBy(pid)
    hasVanished ||= written === 'gone'
    if (written.length === 0 || written === 'gone') continue
    const stat = readStat(pid)
    if (stat === null || stat.isZombie) continue
    // The agent's own child punches holes into spools.
    if (stat.command === 'fallocate' && stat.parent === process.pid) continue
    const leader = leaders.get(stat.session)
    const isOfSession = leader !== undefined && stat.startTime >= leader.startTime
    const places =
      written === 'denied'
        ? [isOfSession ? leader.directory : undefined]
        : written.map((path) => files.get(path.replace(/ \(deleted\)$/, '')))
    for (const directory of new Set(places))
      if (directory !== undefined)
        writers.set(directory, [...(writers.get(directory) ?? []), { ...stat, isSeen: written !== 'denied' }])
  }
  return { writers, hasVanished }
}

const allPids = (lowest = 0) =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > lowest)

/** Maps each directory to those of `pids` that have its spools open for writing. Throws if /proc cannot be read (EMFILE). */
export const writersAmong = (
  pids: readonly number[],
  directories: readonly string[],
): Map<string, Writer[]> => scan(pids, directories).writers

export const writersWithin = (directories: readonly string[]): Map<string, Writer[]> =>
  directories.length === 0 ? new Map() : writersAmong(allPids(), directories)

/** Whether PIDs have wrapped around since this one was assigned. */
const isWrapped = (pid: number) => Number(readFileSync('/proc/loadavg', 'latin1').split(' ')[4]) < pid

/**
 * Writers of one ended script whose wrapper started `age` milliseconds ago; `known`: those of an earlier
 * scan. Scans all processes unless `known` or the cgroup has some, because a process of the script may have
 * left its cgroup.
 */
export function writersOf(
  directory: string,
  { cgroup, root, isBoxed }: Tree,
  { age, known }: { age: number; known: readonly Writer[] },
): Writer[] {
  // bwrap exits a moment after the script.
  const ofScript = ({ writers }: Scan) =>
    (writers.get(directory) ?? []).filter(({ command }) => !isBoxed || command !== 'bwrap')
  const near = [...new Set([...known.map(({ pid }) => pid), ...(cgroup === null ? [] : cgroupPids(cgroup))])]
  const found = near.length === 0 ? [] : ofScript(scan(near, [directory]))
  if (found.length > 0) return found
  const isFew = root !== null && age <= fewPids && !isWrapped(root.pid)
  for (let scans = 1; ; scans++) {
    const all = scan(allPids(isFew ? root.pid : 0), [directory])
    const writers = ofScript(all)
    if (writers.length > 0 || !all.hasVanished || scans === maxScans) return writers
  }
}
