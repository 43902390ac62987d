import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setImmediate as breathe } from 'node:timers/promises'
import { leaderOf } from './exit-file.ts'
import { isAlive, type ProcessId, readStat } from './machine.ts'
import { membersOf, type Origin, type Process, type ProcessTable, type Tree } from './processes.ts'
import { writersAmong } from './writers.ts'

let found: Promise<number> | undefined

/**
 * Process that adopts orphans here: process 1, or an ancestor of the agent that is a subreaper
 * (PR_SET_CHILD_SUBREAPER), such as a user's systemd. No file shows it, so probe once.
 */
function adopter(): Promise<number> {
  found ??= tryOut().catch(() => 1)
  return found
}

async function tryOut(): Promise<number> {
  const parent = spawn('/bin/sh', ['-c', 'sleep 60 >/dev/null 2>&1 & echo $!'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let output = ''
  parent.stdout.on('data', (data: Buffer) => (output += data.toString()))
  await once(parent, 'close')
  const orphan = readStat(Number(output))
  if (orphan === null) return 1
  process.kill(orphan.pid, 'SIGKILL')
  // It must not be mistaken for a stray.
  while (isAlive(orphan)) await breathe()
  return orphan.parent
}

interface Place {
  readonly adopters: ReadonlySet<number>
  /** Whether a process is in the agent's own cgroups, like everything that scripts start. */
  readonly isNear: (pid: number) => boolean
}

/** Processes that may have left an execution: started after it, orphaned, without another's tag. */
export function straysAmong(
  all: readonly Process[],
  members: readonly Process[],
  { mark, root }: Origin,
  { adopters, isNear }: Place,
): Process[] {
  const ours = new Set(members.map(({ pid }) => pid))
  return all.filter(
    (each) =>
      adopters.has(each.parent) &&
      !ours.has(each.pid) &&
      each.startTime >= (root?.startTime ?? 0) &&
      (each.tag === null || each.tag === mark) &&
      isNear(each.pid),
  )
}

function cgroupsOf(pid: number | 'self'): string | null {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8')
  } catch {
    return null
  }
}

interface TreeScan {
  readonly all: Process[]
  readonly members: Process[]
  /** Processes that may belong to it. */
  readonly strays: Process[]
}

/** Whether only tags and parents identify the processes of a tree. */
export function isLoose({ cgroup, isBoxed, root }: Tree): boolean {
  return cgroup === null && !isBoxed && root !== null
}

/**
 * Scans all processes for those of a tree and, if it is loose, for those that may have left it. `known`:
 * processes found earlier, by pid; new ones are added.
 */
export async function scanTree(
  tree: Tree,
  table: ProcessTable,
  known: Map<number, ProcessId>,
): Promise<TreeScan> {
  const adopters = isLoose(tree) ? new Set([1, await adopter()]) : new Set<number>()
  const near = cgroupsOf('self')
  const place: Place = { adopters, isNear: (pid) => cgroupsOf(pid) === near }
  const leader = tree.directory === undefined ? null : leaderOf(tree.directory)
  if (leader !== null) known.set(leader.pid, leader)
  const all = await table.scan(tree.root?.startTime)
  let members = membersOf(all, tree, known.values())
  let strays = straysAmong(all, members, tree, place)
  const { directory } = tree
  const pids = strays.map(({ pid }) => pid)
  const ours = directory === undefined ? [] : (writersAmong(pids, [directory]).get(directory) ?? [])
  if (ours.length > 0) {
    members = membersOf(all, tree, [...known.values(), ...ours])
    strays = straysAmong(all, members, tree, place)
  }
  for (const { pid, startTime } of members) known.set(pid, { pid, startTime })
  return { all, members, strays }
}
