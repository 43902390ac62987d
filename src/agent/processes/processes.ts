import { readdirSync } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import { Mutex } from '../../core/mutex.ts'
import { type ProcessId, type ProcessStat, readStat, realUidOf, startedWith, tagVariable } from './machine.ts'

/** Milliseconds of reading /proc before the event loop gets a turn. */
const longestRead = 5

export interface Process extends ProcessStat {
  /** Execution named in its environment. */
  readonly tag: string | null
  /** Real user, if it has a tag. */
  readonly uid: number | null
}

const tagPattern = new RegExp(`\\0${tagVariable}=([^\\0]+)\\0`)

const untagged = { tag: null, uid: null }

type KnownTag = Pick<Process, 'startTime' | 'tag' | 'uid'>

export interface Origin {
  /** Tag in their environment (machine.ts); null for those of an older agent. */
  readonly mark: string | null
  /** The wrapper, a session leader; the script leads its own session. */
  readonly root: ProcessId | null
  /** Users whose processes are believed if their tag claims membership. */
  readonly uids: readonly number[]
}

/** One execution's processes: their containment and identity. */
export interface Tree extends Origin {
  readonly cgroup: string | null
  /** In a strict sandbox: its own processes pass on the script's exit code, so they get no TERM. */
  readonly isBoxed: boolean
  /** Directory of its output; absent if it does not write to files. */
  readonly directory?: string
}

/** All processes except zombies and this one. Concurrent callers share one scan; /proc is read in slices. */
export class ProcessTable {
  /** Cache by pid; valid while a process lives, because it inherits its tag. */
  #tags = new Map<number, KnownTag>()
  readonly #reads = new Mutex()
  #next: Promise<Process[]> | undefined
  #since = 0

  /**
   * Processes at some moment after the call. Those started before `since`, in ticks since boot, get no tag,
   * because the wrapper is the first to carry that of its execution.
   */
  scan(since = 0): Promise<Process[]> {
    this.#since = this.#next ? Math.min(this.#since, since) : since
    this.#next ??= this.#reads.run(() => {
      this.#next = undefined
      return this.#read(this.#since)
    })
    return this.#next
  }

  async #read(since: number): Promise<Process[]> {
    const found: Process[] = []
    const tags = new Map<number, KnownTag>()
    let sliceStart = performance.now()
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue
      const stat = readStat(Number(name))
      if (stat === null || stat.isZombie || stat.pid === process.pid) continue
      if (stat.startTime < since) found.push({ ...stat, ...untagged })
      else {
        const seen = this.withTag(stat)
        const { startTime, tag, uid } = seen
        tags.set(stat.pid, { startTime, tag, uid })
        found.push(seen)
      }
      if (performance.now() - sliceStart < longestRead) continue
      await breathe()
      sliceStart = performance.now()
    }
    this.#tags = tags
    return found
  }

  /** Adds the tag in a process's environment, cached from the last scan. */
  withTag(stat: ProcessStat): Process {
    const { pid, startTime } = stat
    const known = this.#tags.get(pid)
    if (known?.startTime === startTime) return { ...stat, ...known }
    const tag = tagPattern.exec(startedWith(pid))?.[1] ?? null
    return { ...stat, tag, uid: tag === null ? null : realUidOf(pid) }
  }
}

/** Whether its tag claims membership of the execution and its user is believed. */
export function isTagged({ tag, uid }: Process, origin: Origin): boolean {
  return tag !== null && tag === origin.mark && uid !== null && origin.uids.includes(uid)
}

/**
 * Processes that belong to an execution: its session, sessions of its processes, all descendants, and any
 * other process of its users with its tag, which finds most detached ones. `known`: processes found earlier,
 * because a child whose parent has ended is no longer a descendant.
 */
export function membersOf(all: readonly Process[], origin: Origin, known: Iterable<ProcessId>): Process[] {
  const byPid = new Map(all.map((each) => [each.pid, each]))
  const origins = new Set<number>()
  // A pid is not reused while a session has its number (credentials(7)): if it was, neither is ours.
  for (const { pid, startTime } of origin.root ? [origin.root, ...known] : known)
    if ((byPid.get(pid)?.startTime ?? startTime) === startTime) origins.add(pid)
  const children = new Map<number, Process[]>()
  for (const each of all) {
    const siblings = children.get(each.parent)
    if (siblings) siblings.push(each)
    else children.set(each.parent, [each])
  }
  const found = all.filter(
    (each) => origins.has(each.pid) || origins.has(each.session) || isTagged(each, origin),
  )
  const members = new Set(found)
  // The set grows during the iteration.
  for (const member of members) for (const child of children.get(member.pid) ?? []) members.add(child)
  return [...members]
}

/** Groups with only members: one signal reaches every process, even those being forked. */
export function groupsWithin(all: readonly Process[], members: readonly Process[]): number[] {
  const ours = new Set(members.map(({ pid }) => pid))
  const groups = new Set(members.map(({ group }) => group))
  for (const { pid, group } of all) if (!ours.has(pid)) groups.delete(group)
  return [...groups].filter((group) => group > 1)
}
