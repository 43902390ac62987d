import { readdirSync } from 'node:fs'
import { setImmediate as breathe, setTimeout as delay } from 'node:timers/promises'
import type { Containment as Level } from '../../core/hosts/host.ts'
import { cgroupPids, isPopulated, killCgroup } from './cgroups.ts'
import { leaderOf } from './exit-file.ts'
import { isAlive, type ProcessId, readStat, thisMachine, ticksPerSecond } from './machine.ts'
import { groupsWithin, isTagged, type Process, type ProcessTable, type Tree } from './processes.ts'
import { scanTree } from './strays.ts'

/** What is in force for a tree, whatever the machine offers to others. */
export function levelOf({ cgroup, isBoxed }: Pick<Tree, 'cgroup' | 'isBoxed'>): Level {
  if (cgroup !== null) return 'cgroup'
  // The end of the first process of a PID namespace is the end of all in it.
  return isBoxed ? 'pid-namespace' : 'process-group'
}

/** A process that could not be ended. */
export interface Remnant {
  readonly pid: number
  readonly command: string
  /** Waiting in the kernel, for a disk or a network that does not answer: no signal reaches it. */
  readonly isUninterruptible: boolean
}

/** Milliseconds; tests do not wait that long. */
export interface EndingTimes {
  /** Between TERM and KILL (contract §4). */
  readonly grace: number
  /** How long KILL may take to be obeyed: a process in uninterruptible sleep does not hold up the result for ever. */
  readonly patience: number
}
export const endingTimes: EndingTimes = { grace: 5_000, patience: 5_000 }

const firstPause = 10
const longestPause = 40
/** A scan of all processes takes at most one part in so many of the time. */
const scanShare = 4
const longestRest = 500
const signalsAtOnce = 500
/** Processes of a cgroup that are read in one go; where there are more, a scan is not what costs. */
const fewProcesses = 100
/** Milliseconds after which those that left the cgroup are looked for, though it is not empty yet. */
const scanAfter = 1_000
/** Milliseconds after which the rest of the agent has its turn. */
const longestSlice = 5

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It ended by itself in this very moment, which is what was wanted, or is another user's: then it survives.
  }
}

/** `target`: a process, or a group by its negative number. */
function ask(target: number): void {
  signal(target, 'SIGTERM')
  // A stopped process gets TERM only once it goes on.
  signal(target, 'SIGCONT')
}

/** A session that was asked to end, while nobody has looked yet for what has left the cgroup. */
interface PendingScan {
  /** The groups that were asked. */
  readonly groups: ReadonlySet<number>
  /** In ticks since boot. */
  readonly askedAt: number
  /** When to scan at the latest, on the monotonic clock. */
  readonly until: number
}

/** Ends one tree of processes, in steps that leave the agent its time for others. */
class Ending {
  readonly #tree: Tree
  readonly #table: ProcessTable
  /** All that were ever found outside the cgroup, by pid. */
  readonly #known: Map<number, ProcessId>
  /** Of the last scan, those that may live still. */
  #waiting: ProcessId[] = []
  readonly #stopped = new Map<number, number>()
  /** No scan of all processes before this moment, while nothing is urgent. */
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
   * TERM, once, to those that are there: what a script starts in order to clean up is left to do so. To whole groups where
   * that is possible, as it reaches what is just being forked.
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

  /** TERM to those that had left the cgroup when it was asked; not to what was begun since, in order to clean up. */
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

  /** Whether all have ended; looked at closely only when nothing that is known lives, as that costs. */
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
   * KILL. The cgroup's in one step. Others are stopped first, until no new ones are found: what is stopped forks no more,
   * so a tree that forks faster than it can be looked at comes to an end too. True when there was nothing left to end.
   */
  async kill(mayStop: boolean): Promise<boolean> {
    const { cgroup } = this.#tree
    if (cgroup !== null && isPopulated(cgroup)) {
      killCgroup(cgroup)
      // Mostly that is all of it, and a scan of thousands that are just ending is dear.
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

  /** Stops each as it is found, the youngest first: one that lives for milliseconds is gone when all have been read. */
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

/** Polls ever less often, up to so many milliseconds; false when the time is over. */
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
 * Ends a whole tree: TERM, 5 s, KILL (contract §4). Answers what outlived even that. `known`: what was found before, by
 * pid; what is found is added.
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
