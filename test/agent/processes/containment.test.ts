import { readdirSync, readFileSync } from 'node:fs'
import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'

function running(needle: string): number {
  let count = 0
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(needle)) count += 1
    } catch {
      // It has ended since the listing.
    }
  }
  return count
}

test('a cancel ends a running process tree', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const needle = `rsm-cancel-${process.pid}-${Date.now()}`
  const script = `bash -c 'exec -a ${needle} sleep 600' & echo up; wait`
  server.execute(agent.agentId, { taskId: 'cancel', script })
  await server.until(() => server.text('cancel') === 'up\n', 'it runs')
  server.send('CANCEL_SCRIPT', { taskId: 'cancel' })
  const complete = await server.completed('cancel')
  t.is(complete.status, 'CANCELLED')
  t.is(complete.exitCode, 143)
  t.is(complete.signal, 'SIGTERM')
  t.is(running(needle), 0)
})

test('a cancel does not affect another agent of the same machine that runs the same task', async (t) => {
  const { server: one, agent: first } = await linkedAgent(t)
  const { server: two, agent: second } = await linkedAgent(t)
  const script = 'echo up; sleep 600'
  one.execute(first.agentId, { taskId: 'shared', script })
  two.execute(second.agentId, { taskId: 'shared', script })
  await one.until(() => one.text('shared') === 'up\n', 'it runs here')
  await two.until(() => two.text('shared') === 'up\n', 'it runs there')
  one.send('CANCEL_SCRIPT', { taskId: 'shared' })
  t.is((await one.completed('shared')).status, 'CANCELLED')
  two.execute(second.agentId, { taskId: 'after', script: 'echo later' })
  await two.completed('after')
  t.is(two.of('shared').completes.length, 0)
  two.send('CANCEL_SCRIPT', { taskId: 'shared' })
  t.is((await two.completed('shared')).status, 'CANCELLED')
})

test('a queued script that is cancelled never starts', async (t) => {
  const { server, agent } = await linkedAgent(t, { maxExecutions: 1 })
  server.execute(agent.agentId, { taskId: 'first', script: 'echo up; sleep 600' })
  await server.until(() => server.text('first') === 'up\n', 'the first one runs')
  server.execute(agent.agentId, { taskId: 'second', script: 'echo never' })
  server.send('CANCEL_SCRIPT', { taskId: 'second' })
  const complete = await server.completed('second')
  t.is(complete.status, 'CANCELLED')
  t.is(complete.exitCode, 143)
  t.is(complete.duration, 0)
  server.send('CANCEL_SCRIPT', { taskId: 'first' })
  t.is((await server.completed('first')).status, 'CANCELLED')
  t.is(server.text('second'), '')
})

test('a cancel that overtakes its execution is remembered', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.send('CANCEL_SCRIPT', { taskId: 'early' })
  server.execute(agent.agentId, { taskId: 'early', script: 'echo never' })
  t.is((await server.completed('early')).status, 'CANCELLED')
  t.is(server.text('early'), '')
})

test('HELLO names the containment of process trees', async (t) => {
  const { server } = await linkedAgent(t)
  t.regex(server.hellos[0]?.capabilities.containment ?? '', /^(cgroup|process-group)$/)
})
