import { readdirSync } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import { Mutex } from '../../core/mutex.ts'
import { type ProcessId, type ProcessStat, readStat, realUidOf, startedWith, tagVariable } from './machine.ts'

/** Milliseconds of reading /proc after which the rest of the agent has its turn. */
const longestRead = 5

/** A process, and what tells whose it is. */
export interface Process extends ProcessStat {
  /** The execution that its environment names. */
  readonly tag: string | null
  /** Its real user, where it names an execution. */
  readonly uid: number | null
}

const tagPattern = new RegExp(`\\0${tagVariable}=([^\\0]+)\\0`)

const untagged = { tag: null, uid: null }

type KnownTag = Pick<Process, 'startTime' | 'tag' | 'uid'>

/** What the processes of an execution are known by. */
export interface Origin {
  /** What their environment says (machine.ts); null where an older agent has started it. */
  readonly mark: string | null
  /** The wrapper, a session leader; the script leads a session of its own. */
  readonly root: ProcessId | null
  /** The users whose processes may say by their environment that they belong to it. */
  readonly uids: readonly number[]
}

/** One execution's processes: where they are held, and what they are known by. */
export interface Tree extends Origin {
  readonly cgroup: string | null
  /** In a strict sandbox, whose own processes hand the script's exit code on and so are not asked to end. */
  readonly isBoxed: boolean
  /** Where its output goes; absent where that is no file. */
  readonly directory?: string
}

/** All processes of the machine but zombies and this one. Concurrent callers share one scan, and /proc is read in slices. */
export class ProcessTable {
  /** What does not change while a process lives in a way that matters: a child inherits it. */
  #tags = new Map<number, KnownTag>()
  readonly #reads = new Mutex()
  #next: Promise<Process[]> | undefined
  #since = 0

  /**
   * As they are at some moment after the call. What started before `since`, in ticks since boot, need not say whose it is:
   * the wrapper is the first to carry the tag of its execution.
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

  /** Whose it says it is, by its environment; remembered from the last scan. */
  withTag(stat: ProcessStat): Process {
    const { pid, startTime } = stat
    const known = this.#tags.get(pid)
    if (known?.startTime === startTime) return { ...stat, ...known }
    const tag = tagPattern.exec(startedWith(pid))?.[1] ?? null
    return { ...stat, tag, uid: tag === null ? null : realUidOf(pid) }
  }
}

/** Whether it says itself that it belongs to an execution, and is of a user who may say so. */
export function isTagged({ tag, uid }: Process, origin: Origin): boolean {
  return tag !== null && tag === origin.mark && uid !== null && origin.uids.includes(uid)
}

/**
 * Which of all processes belong to an execution: its session, those that its processes made, all their descendants, and
 * whatever else of its users carries its tag, which finds most of those that detached themselves. `known`: those
 * that were found before; a child whose parent has ended is no descendant any more.
 */
export function membersOf(all: readonly Process[], origin: Origin, known: Iterable<ProcessId>): Process[] {
  const byPid = new Map(all.map((each) => [each.pid, each]))
  const origins = new Set<number>()
  // A pid is not given anew while a session has its number (credentials(7)): if another has it now, neither is ours.
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
  // Grows while it is walked.
  for (const member of members) for (const child of children.get(member.pid) ?? []) members.add(child)
  return [...members]
}

/** The groups of which every process is among the members: one signal reaches each, those just being forked included. */
export function groupsWithin(all: readonly Process[], members: readonly Process[]): number[] {
  const ours = new Set(members.map(({ pid }) => pid))
  const groups = new Set(members.map(({ group }) => group))
  for (const { pid, group } of all) if (!ours.has(pid)) groups.delete(group)
  return [...groups].filter((group) => group > 1)
}
