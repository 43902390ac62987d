import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { kill } from '../../helpers/agents/agent-process.ts'
import { followEvents } from '../../helpers/clients/follow.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'

const megabyte = 1024 * 1024
/** Tenths of a second. */
const patience = 1200
/** MB above idle (design "Flow control"). */
const growthBound = 64
/** Milliseconds. An idle machine stays far below 100, and a loaded one fails only on a stall. */
const worstMedian = 1000
const line = `${'0123456789abcdef'.repeat(5)}\n`

/** A linked agent from `bin/run.js`, which sets its memory limits. */
async function realAgent(
  t: ExecutionContext,
  server: ServerProcess,
): Promise<{ hostId: number; child: ChildProcess }> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-flood-'))
  t.teardown(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const child = spawn(
    process.execPath,
    [
      resolve('bin/run.js'),
      'agent',
      'run',
      '--url',
      server.url,
      '--data-dir',
      directory,
      '--hostname',
      'flooded',
    ],
    { env: { PATH: process.env['PATH'], RSM_AGENT_ENROLL_TOKEN: token }, stdio: 'ignore' },
  )
  t.teardown(() => kill(child, 'SIGKILL'))
  for (let look = 0; look < patience; look += 1) {
    const { content } = await server.data('GET', '/api/hosts')
    const linked = (content as Host[]).find(({ agent }) => agent?.connected)
    if (linked) return { hostId: linked.id, child }
    await setTimeout(100)
  }
  throw new Error('the agent is not linked')
}

function memory(pid: number | undefined, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024
}

/** Resets the peak resident memory of a process (proc(5), clear_refs); returns its current one in MB. */
function countAnew(pid: number | undefined): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return memory(pid, 'VmRSS')
}

/** Follows a script that prints the time every 50 ms; resolves to the sorted delays of its lines in milliseconds. */
async function delaysOf(server: ServerProcess, taskId: string, isOver: () => boolean): Promise<number[]> {
  const delays: number[] = []
  const headers = { authorization: `Bearer ${server.token}` }
  await followEvents(`${server.url}/api/tasks/${taskId}/logs?follow=true`, headers, ({ event, data }) => {
    const now = Date.now()
    const times = event === 'output' ? (data.data as string).trim().split('\n') : []
    for (const time of times) delays.push(now - Number(time) / 1e6)
    return isOver()
  })
  return delays.sort((a, b) => a - b)
}

const floods = [
  { what: '1 GiB, cut at the default of 64 MiB,', bytes: 1024 * megabyte, limit: 64 * megabyte },
  { what: '256 MiB, kept as a whole,', bytes: 256 * megabyte, limit: 1024 * megabyte },
]

for (const { what, bytes, limit } of floods)
  test.serial(
    `F14 a flood of ${what} costs agent and server at most 64 MB, and delays no other task`,
    async (t) => {
      t.timeout(590_000)
      const server = await startServerProcess(t)
      const agent = await realAgent(t, server)
      // The first execution loads code that is not part of the flood.
      await finished(server, await startTask(server, [agent.hostId]))
      const ticking = await startTask(server, [agent.hostId], {
        script: { content: 'while :; do date +%s%N; sleep 0.05; done' },
      })
      let isOver = false
      const delays = delaysOf(server, ticking, () => isOver)

      const processes = { agent: agent.child.pid, server: server.pid }
      const idle = { agent: countAnew(processes.agent), server: countAnew(processes.server) }
      const flood = await startTask(server, [agent.hostId], {
        script: { content: `yes ${line.trimEnd()} | head -c ${bytes}` },
        maxOutputBytes: limit,
        timeout: 500,
      })
      const ended = await finished(server, flood)
      isOver = true
      const peak = { agent: memory(processes.agent, 'VmHWM'), server: memory(processes.server, 'VmHWM') }
      const late = await delays
      await server.data('POST', `/api/tasks/${ticking}/cancel`)
      await finished(server, ticking)

      const [result] = ended.results
      t.is(result?.status, 'SUCCESS')
      t.is(result?.stdoutBytes, bytes)
      t.is(result?.truncated, bytes > limit)
      t.true(result?.outputComplete)
      const growth = { agent: peak.agent - idle.agent, server: peak.server - idle.server }
      const median = late[late.length >> 1] ?? Number.POSITIVE_INFINITY
      t.log(`agent +${growth.agent.toFixed(0)} MB, server +${growth.server.toFixed(0)} MB`)
      t.log(
        `${late.length} lines of another task, median ${median.toFixed(0)} ms, last ${late.at(-1)?.toFixed(0)} ms`,
      )
      t.true(growth.agent <= growthBound, `the agent grew by ${growth.agent} MB`)
      t.true(growth.server <= growthBound, `the server grew by ${growth.server} MB`)
      t.true(late.length > 5 && median < worstMedian, `a median of ${median} ms over ${late.length} lines`)

      if (bytes > limit) return
      const log = await fetch(`${server.url}/api/tasks/${flood}/logs`, {
        headers: { authorization: `Bearer ${server.token}`, accept: 'text/plain' },
      })
      const stored = createHash('sha256')
      for await (const piece of log.body ?? []) stored.update(piece as Uint8Array)
      const expected = createHash('sha256')
      const block = line.repeat(Math.ceil(megabyte / line.length))
      for (let left = bytes; left > 0; left -= block.length) expected.update(block.slice(0, left))
      t.is(stored.digest('hex'), expected.digest('hex'))
    },
  )
