import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import { followThrough, type Heard } from '../chaos/follower.ts'
import { insist } from '../chaos/load.ts'
import type { TestServer } from '../servers/server.ts'
import { type JournalAgent, type Saying, textOf } from './journal-agent.ts'

/** One task of journal agents, with the entries that a follower received. */
export interface Said {
  readonly saying: Saying
  readonly hostIds: readonly number[]
  readonly heard: Heard
  readonly task: Task
}

/** Posts the task until it is accepted, then follows it to its end. */
export async function sayAll(
  { front, follower }: { front: TestServer; follower: TestServer },
  { saying, hostIds, options = {} }: Pick<Said, 'saying' | 'hostIds'> & { options?: object },
): Promise<Said> {
  const body = {
    script: { content: JSON.stringify(saying) },
    target: { hostIds },
    queueSeconds: 120,
    ...options,
  }
  const answer = await insist(front, 'POST', '/api/tasks', body)
  if (answer.status >= 300) throw new Error(`refused: ${JSON.stringify(answer.body)}`)
  const heard: Heard = { entries: [], resumed: 0 }
  const task = await followThrough(follower, answer.body.data.taskId, heard)
  return { saying, hostIds, heard, task }
}

/** Differences between a task and the actions of its agents. */
export function faultsOf({ saying, hostIds, heard, task }: Said): string[] {
  const faults: string[] = []
  const byHost = new Map<number, string[]>()
  for (const { hostId, data } of heard.entries) byHost.set(hostId, [...(byHost.get(hostId) ?? []), data])
  const ids = heard.entries.map(({ id }) => id)
  if (ids.some((id, at) => at > 0 && id <= (ids[at - 1] ?? 0))) faults.push('cursors do not rise')
  const wanted = { SUCCESS: saying.exitCode === 0, FAILED: saying.exitCode !== 0 }
  for (const { hostId, status, exitCode, outputComplete, error } of task.results ?? []) {
    const name = `${task.taskId} on ${hostId}`
    if (!wanted[status as 'SUCCESS' | 'FAILED'] || exitCode !== saying.exitCode || !outputComplete)
      faults.push(`${name}: ${status} ${exitCode}, output complete ${outputComplete}: ${error}`)
    const text = (byHost.get(hostId) ?? []).join('')
    const expected = Array.from({ length: saying.pieces }, (_, piece) =>
      textOf(task.taskId, hostId, piece),
    ).join('')
    if (text !== expected) faults.push(`${name}: ${text.length} characters instead of ${expected.length}`)
  }
  if (task.results?.length !== hostIds.length) faults.push(`${task.taskId}: ${task.results?.length} results`)
  return faults
}

/** Tasks that an agent started more than once. */
export const startedTwice = (agents: readonly JournalAgent[]): [string, number][] =>
  agents.flatMap(({ starts }) => [...starts].filter(([, count]) => count > 1))
