import { type ChildProcess, spawn } from 'node:child_process'
import type { ExecutionContext } from 'ava'
import { startTimeOf } from '../../../src/agent/processes/machine.ts'
import { ProcessTable, type Tree } from '../../../src/agent/processes/processes.ts'

const own = process.getuid?.() ?? 0

/** Starts a process that leads a group; the group ends with the test. */
export function started(t: ExecutionContext, argv: string[], env: Record<string, string> = {}): ChildProcess {
  const [program = '', ...words] = argv
  const child = spawn(program, words, {
    detached: true,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // The whole group has ended.
    }
  })
  return child
}

/** The marks by which the processes of an execution are found. */
export function treeOf(mark: string, child: ChildProcess | null): Tree {
  const pid = child?.pid ?? 0
  const root = child && { pid, startTime: startTimeOf(pid) ?? 0 }
  return { mark, root, uids: [own], cgroup: null, isBoxed: false }
}

export const alive = (child: ChildProcess) => child.exitCode === null && child.signalCode === null

/** Number of processes with this mark. */
export async function running(mark: string): Promise<number> {
  return (await new ProcessTable().scan()).filter((each) => each.tag === mark).length
}

let count = 0
export const newMark = () => `tree-${process.pid}-${Date.now()}-${count++}`
