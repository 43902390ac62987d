import type { Task, TaskSummary } from '../../../src/core/protocol/http/tasks.ts'
import type { Counts } from '../../../src/core/tasks/task.ts'
import type { TestServer } from '../servers/server.ts'
import { followEvents } from './follow.ts'

/** Starts an ad-hoc command; returns the taskId. */
export async function startTask(
  server: TestServer,
  hostIds: number[],
  options: Record<string, unknown> = {},
): Promise<string> {
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { hostIds },
    ...options,
  })
  return taskId
}

const stream = (server: TestServer, taskId: string, query = '') => ({
  url: `${server.url}/api/tasks/${taskId}/logs?follow=true${query}`,
  headers: { authorization: `Bearer ${server.token}` },
})

/** Waits for the task's end; returns the task with all results. */
export async function finished(server: TestServer, taskId: string): Promise<Task> {
  const { url, headers } = stream(server, taskId)
  const events = await followEvents(url, headers, ({ event }) => event === 'end')
  return events.at(-1)?.data as Task
}

/** Waits until the counts of the hosts of a task match `fits`. */
export async function counted(
  server: TestServer,
  taskId: string,
  fits: (counts: Counts) => boolean,
): Promise<TaskSummary> {
  const { url, headers } = stream(server, taskId)
  const events = await followEvents(
    url,
    headers,
    ({ event, data }) => (event === 'task' || event === 'end') && fits((data as TaskSummary).counts),
  )
  return events.at(-1)?.data as TaskSummary
}

/** Waits until `count` hosts of the task are RUNNING. */
export function running(server: TestServer, taskId: string, count = 1): Promise<TaskSummary> {
  return counted(server, taskId, ({ RUNNING }) => RUNNING === count)
}

export function task(server: TestServer, taskId: string): Promise<Task> {
  return server.data('GET', `/api/tasks/${taskId}`)
}

/** All output of a task, read in pages. */
export async function entries(
  server: TestServer,
  taskId: string,
): Promise<{ sequence: number; data: string; stream: string; hostId: number; id: number }[]> {
  const all = []
  for (let after = 0; ; ) {
    const { entries: page, next } = await server.data('GET', `/api/tasks/${taskId}/logs?after=${after}`)
    if (page.length === 0) return all
    all.push(...page)
    after = next
  }
}

export const statusesOf = (ended: Task): string[] => ended.results.map(({ status }) => status)
