import { RsmError } from '../../core/errors.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { Services } from '../../core/services.ts'

/** Running tasks that are looked into: the newest. */
const mostTasks = 20

/** How many running tasks wait for each host, by its id. */
export async function countWaiting({ tasks }: Pick<Services, 'tasks'>): Promise<Map<number, number>> {
  const { content } = await tasks.list({ status: 'RUNNING', size: mostTasks })
  const waiting = new Map<number, number>()
  for (const { taskId, counts } of content) {
    if ((counts.PENDING ?? 0) === 0) continue
    const task: Task | null = await tasks.get(taskId).catch((error: unknown) => {
      if (error instanceof RsmError && error.code === 'not_found') return null
      throw error
    })
    for (const { hostId, status } of task?.results ?? [])
      if (status === 'PENDING') waiting.set(hostId, (waiting.get(hostId) ?? 0) + 1)
  }
  return waiting
}
