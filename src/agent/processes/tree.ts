import { readdirSync } from 'node:fs'
import { setImmediate as breathe, setTimeout as delay } from 'node:timers/promises'
import type { Containment as Level } from '../../core/hosts/host.ts'
import { cgroupPids, isPopulated, killCgroup } from './cgroups.ts'
import { leaderOf } from './exit-file.ts'
import { isAlive, type ProcessId, readStat, thisMachine, ticksPerSecond } from './machine.ts'
import { groupsWithin, isTagged, type Process, type ProcessTable, type Tree } from './processes.ts'
import { scanTree } from './strays.ts'

/** Containment in force for a tree, whatever the machine offers to others. */
export function levelOf({ cgroup, isBoxed }: Pick<Tree, 'cgroup' | 'isBoxed'>): Level {
  if (cgroup !== null) return 'cgroup'
  // When the first process of a PID namespace ends, all its processes end.
  return isBoxed ? 'pid-namespace' : 'process-group'
}

export interface Remnant {
  readonly pid: number
  readonly command: string
  /** Blocked in the kernel by a disk or network that does not answer: signals do not reach it. */
  readonly isUninterruptible: boolean
}

/** Milliseconds; shorter in tests. */
export interface EndingTimes {
  /** Between TERM and KILL (contract §4). */
  readonly grace: number
  /** After KILL: a process in uninterruptible sleep must not hold up the result forever. */
  readonly patience: number
}
export const endingTimes: EndingTimes = { grace: 5_000, patience: 5_000 }

const firstPause = 10
const longestPause = 40
/** Scans of all processes take at most a quarter of the time. */
const scanShare = 4
const longestRest = 500
const signalsAtOnce = 500
/** Cgroup processes read in one go; with more, a scan costs little in comparison. */
const fewProcesses = 100
/** Milliseconds after which processes outside the cgroup are sought, even if it is not empty yet. */
const scanAfter = 1_000
/** Milliseconds before the event loop gets a turn. */
const longestSlice = 5

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // Already ended, or another user's: then it survives.
  }
}

/** `target`: a process, or a group by its negative number. */
function ask(target: number): void {
  signal(target, 'SIGTERM')
  // A stopped process handles TERM only once it continues.
  signal(target, 'SIGCONT')
}

/** A TERM sent to sessions without a scan for processes that left the cgroup. */
interface PendingScan {
  readonly groups: ReadonlySet<number>
  /** Ticks since boot. */
  readonly askedAt: number
  /** Latest time of the scan, on the monotonic clock. */
  readonly until: number
}

/** Ends one process tree, in steps that yield to the event loop. */
class Ending {
  readonly #tree: Tree
  readonly #table: ProcessTable
  /** All processes ever found outside the cgroup, by pid. */
  readonly #known: Map<number, ProcessId>
  #waiting: ProcessId[] = []
  readonly #stopped = new Map<number, number>()
  /** Earliest time of the next full scan, unless urgent. */
  #rest = 0
  #hasKilledGroup = false
  #pendingScan: PendingScan | null = null

  constructor(tree: Tree, table: ProcessTable, known: Map<number, ProcessId>) {
    this.#tree = tree
    this.#table = table
    this.#known = known
  }

  async #scan(): Promise<{ all: Process[]; members: Process[] }> {
    const began = performance.now()
    const { all, members } = await scanTree(this.#tree, this.#table, this.#known)
    this.#waiting = members
    const ended = performance.now()
    this.#rest = ended + Math.min((ended - began) * (scanShare - 1), longestRest)
    return { all, members }
  }

  /**
   * Sends TERM once, to the current processes: cleanup processes that a script starts later are spared.
   * Signals whole groups if possible, because that reaches processes being forked.
   */
  async ask(): Promise<void> {
    if (this.#askSession()) return
    const { cgroup } = this.#tree
    const { all, members } = await this.#scan()
    await this.#askThese(all, members, cgroup === null ? [] : cgroupPids(cgroup))
  }

  /** Signals without a scan if the cgroup holds only the sessions of wrapper and script, the usual case. */
  #askSession(): boolean {
    const { cgroup, isBoxed, root, directory } = this.#tree
    if (cgroup === null || isBoxed || root === null) return false
    const leader = directory === undefined ? null : leaderOf(directory)
    const sessions = new Map(
      [root, ...(leader === null ? [] : [leader])].map((each) => [each.pid, each.startTime]),
    )
    const uptime = thisMachine.uptime()
    const pids = cgroupPids(cgroup)
    if (pids.length === 0 || pids.length > fewProcesses) return false
    const found = pids.flatMap((pid) => readStat(pid) ?? [])
    if (
      found.some(
        ({ pid, startTime, session }) =>
          !sessions.has(session) || (sessions.get(pid) ?? startTime) !== startTime,
      )
    )
      return false
    const groups = new Set(found.map(({ group }) => group))
    for (const group of groups) ask(-group)
    this.#pendingScan = { groups, askedAt: uptime * ticksPerSecond, until: performance.now() + scanAfter }
    return true
  }

  /** Sends TERM to processes that left the cgroup before the first TERM, not to cleanup started since. */
  async #askRest({ groups, askedAt }: PendingScan): Promise<void> {
    const { all, members } = await this.#scan()
    const { cgroup } = this.#tree
    const inside = new Set(cgroup === null ? [] : cgroupPids(cgroup))
    const rest = members.filter(
      ({ pid, group, startTime }) => !inside.has(pid) && !groups.has(group) && startTime <= askedAt,
    )
    await this.#askThese(all, rest, [])
  }

  async #askThese(all: readonly Process[], members: readonly Process[], more: readonly number[]) {
    const { isBoxed } = this.#tree
    const groups = new Set(isBoxed ? [] : groupsWithin(all, members))
    for (const group of groups) ask(-group)
    const pids = new Set(members.filter(({ group }) => !groups.has(group)).map(({ pid }) => pid))
    for (const pid of more) pids.add(pid)
    let sent = 0
    for (const pid of pids) {
      const stat = readStat(pid)
      if (stat === null || groups.has(stat.group) || (isBoxed && stat.command === 'bwrap')) continue
      ask(pid)
      sent += 1
      if (sent % signalsAtOnce === 0) await breathe()
    }
  }

  /** Whether all have ended. Scans only if no known process lives, because a scan is expensive. */
  async hasEnded(): Promise<boolean> {
    const isInhabited = isPopulated(this.#tree.cgroup)
    const pendingScan = this.#pendingScan
    if (pendingScan && (!isInhabited || performance.now() > pendingScan.until)) {
      this.#pendingScan = null
      await this.#askRest(pendingScan)
      return this.#waiting.length === 0 && !isPopulated(this.#tree.cgroup)
    }
    if (isInhabited) return false
    for (let last = this.#waiting.at(-1); last !== undefined; last = this.#waiting.at(-1)) {
      if (isAlive(last)) return false
      this.#waiting.pop()
    }
    if (performance.now() < this.#rest) return false
    const { members } = await this.#scan()
    return members.length === 0 && !isPopulated(this.#tree.cgroup)
  }

  /**
   * Sends KILL; to the cgroup in one step. Other processes are stopped first, until no new ones are found:
   * stopped processes cannot fork, so even a tree that forks faster than a scan ends. True if nothing was
   * left to end.
   */
  async kill(mayStop: boolean): Promise<boolean> {
    const { cgroup } = this.#tree
    if (cgroup !== null && isPopulated(cgroup)) {
      killCgroup(cgroup)
      // Usually that was all, and a scan of thousands of ending processes is expensive.
      if (!this.#hasKilledGroup) {
        this.#hasKilledGroup = true
        return false
      }
    }
    if (mayStop && (await this.#stop()) > 0) return false
    const { all, members } = await this.#scan()
    for (const group of groupsWithin(all, members)) signal(-group, 'SIGKILL')
    for (const { pid } of members) signal(pid, 'SIGKILL')
    return members.length === 0 && !isPopulated(cgroup)
  }

  /** Stops each as it is found, youngest first: short-lived ones would be gone after a full scan. */
  async #stop(): Promise<number> {
    const isKnown = (pid: number) => {
      const known = this.#known.get(pid)
      return known !== undefined && (readStat(pid)?.startTime ?? known.startTime) === known.startTime
    }
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    let count = 0
    let sliceStart = performance.now()
    for (const pid of pids.map(Number).sort((a, b) => b - a)) {
      const stat = readStat(pid)
      if (stat === null || stat.isZombie || pid === process.pid) continue
      if (this.#stopped.get(pid) === stat.startTime) continue
      const { session, parent, startTime } = stat
      const isOurs = [pid, session, parent].some(isKnown) || isTagged(this.#table.withTag(stat), this.#tree)
      if (isOurs) {
        signal(pid, 'SIGSTOP')
        this.#stopped.set(pid, startTime)
        this.#known.set(pid, { pid, startTime })
        count += 1
      }
      if (performance.now() - sliceStart < longestSlice) continue
      await breathe()
      sliceStart = performance.now()
    }
    return count
  }

  async remnants(): Promise<Remnant[]> {
    const { cgroup } = this.#tree
    const { members } = await this.#scan()
    const pids = new Set([...members.map(({ pid }) => pid), ...(cgroup === null ? [] : cgroupPids(cgroup))])
    return [...pids].flatMap((pid) => {
      const stat = readStat(pid)
      return stat === null || stat.isZombie ? [] : [stat]
    })
  }
}

/** Polls at growing intervals for at most `milliseconds`; false on timeout. */
async function within(milliseconds: number, isDone: (elapsed: number) => Promise<boolean>): Promise<boolean> {
  const began = performance.now()
  for (let pause = firstPause; ; pause = Math.min(pause * 1.5, longestPause)) {
    const elapsed = performance.now() - began
    if (await isDone(elapsed)) return true
    if (elapsed > milliseconds) return false
    await delay(pause)
  }
}

/**
 * Ends a whole tree: TERM, 5 s, KILL (contract §4). Resolves to the processes that survive. `known`:
 * processes found earlier, by pid; new ones are added.
 */
export async function endTree(
  tree: Tree,
  table: ProcessTable,
  { grace, patience }: EndingTimes = endingTimes,
  known: Map<number, ProcessId> = new Map(),
): Promise<Remnant[]> {
  const ending = new Ending(tree, table, known)
  await ending.ask()
  if (await within(grace, () => ending.hasEnded())) return []
  const isKilled = await within(patience, (elapsed) => ending.kill(elapsed < patience / 2))
  return isKilled ? [] : ending.remnants()
}
