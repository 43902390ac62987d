import { setTimeout as delay } from 'node:timers/promises'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import { followEvents, type SeenEvent } from '../clients/follow.ts'
import type { TestServer } from '../servers/server.ts'

export interface HeardEntry {
  readonly id: number
  readonly hostId: number
  readonly stream: 'stdout' | 'stderr'
  readonly sequence: number
  readonly data: string
}

/** Entries of a task that one follower received over all its streams. */
export interface Heard {
  readonly entries: HeardEntry[]
  /** Number of reconnects. */
  resumed: number
}

/** Follows a task to its end; resumes after the last id whenever its stream breaks. */
export async function followThrough(server: TestServer, taskId: string, heard: Heard): Promise<Task> {
  for (;;) {
    const last = heard.entries.at(-1)
    const headers = {
      authorization: `Bearer ${server.token}`,
      ...(last && { 'last-event-id': String(last.id) }),
    }
    let end: Task | undefined
    let begun = false
    const take = (seen: SeenEvent) => {
      begun = true
      if (seen.event === 'output') heard.entries.push(seen.data)
      if (seen.event === 'end') end = seen.data
      return end !== undefined
    }
    await followEvents(`${server.url}/api/tasks/${taskId}/logs?follow=true`, headers, take).catch(() => [])
    if (end) return end
    if (begun) heard.resumed += 1
    await delay(100)
  }
}
