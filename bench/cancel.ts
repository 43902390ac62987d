import { setTimeout } from 'node:timers/promises'
import { startBareLoop } from './bare/loop.ts'
import type { Fleet } from './fleet/fleet.ts'
import { inTurn, ratioRow } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 3
const bound = 1000
/** Seconds within which every host must run its script. */
const patience = 60

/** Milliseconds from the POST …/cancel of a script that runs on every host to the last result. */
async function untilCancelled(fleet: Fleet): Promise<number> {
  const { taskId } = await fleet.call('POST', '/api/tasks', {
    script: { content: 'echo up; sleep 600' },
    target: { selector: '@*' },
  })
  const path = `/api/tasks/${String(taskId)}`
  await untilAllSpeak(fleet, path)
  const followed = await fetch(`${fleet.url}${path}/logs?follow=true`, {
    headers: { authorization: `Bearer ${fleet.token}` },
  })
  // The stream closes after the event with the task's end.
  const stream = followed.text()
  const start = performance.now()
  await fleet.call('POST', `${path}/cancel`)
  await stream
  const elapsed = performance.now() - start
  const { status } = await fleet.call('GET', `${path}?size=1`)
  if (status !== 'CANCELLED') throw new Error(`the cancelled task ended as ${String(status)}`)
  return elapsed
}

/** Waits until every script has written output: RUNNING alone may mean sent. */
async function untilAllSpeak(fleet: Fleet, path: string): Promise<void> {
  for (let second = 0; second < patience; second++) {
    const task = await fleet.call('GET', `${path}?size=500`)
    const results = task['results'] as { status: string; stdoutBytes: number }[]
    if (results.every(({ status, stdoutBytes }) => status === 'RUNNING' && stdoutBytes > 0)) return
    await setTimeout(1000)
  }
  throw new Error(`the scripts did not all run within ${patience} s`)
}

/** Cancelling on all agents vs a bare loop that reaches as many agents. */
export async function benchCancel(fleet: Fleet): Promise<Row[]> {
  const size = fleet.agents.length
  const bare = await startBareLoop(size)
  try {
    const measured = await inTurn(
      rounds,
      () => untilCancelled(fleet),
      () => bare.run('true'),
    )
    const name = `POST …/cancel to the last of ${size} results, vs a bare ws loop of true`
    const row = ratioRow(name, 'ms', measured, { atMost: Number.POSITIVE_INFINITY })
    return [{ ...row, goal: `≤ ${bound} ms`, met: row.ours <= bound }]
  } finally {
    await bare.stop()
  }
}
