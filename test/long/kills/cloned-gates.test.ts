import { existsSync, readFileSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { startAgent } from '../../../src/agent/main.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** Factor by which the agents' pauses are shorter. */
const haste = 6

test('A01 agents on copies of a directory made during verification start each phase once, whichever one has the link', async (t) => {
  const server = await startTestServer(t)
  const root = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const start = async (name: string, bootId?: string) => {
    const agent = await startAgent({
      ...agentOptions(server, join(root, name)),
      enrollToken,
      hostname: 'web1',
      clock: { ...systemClock, after: (wait, run) => systemClock.after(wait / haste, run) },
      ...(bootId !== undefined && { machine: { bootId: () => bootId, uptime: () => 5 } }),
    })
    t.teardown(() => agent.stop())
    return agent
  }
  const first = await start('first')
  await until('the first is linked', () => first.linked())
  const [host] = (await server.data('GET', '/api/hosts')).content
  const starts = () => (existsSync(`${root}/starts`) ? readFileSync(`${root}/starts`, 'utf8') : '')
  const writes = (letter: string, rest: string) => ({
    content: `printf ${letter} >> ${root}/starts; ${rest}`,
  })
  const taskId = await startTask(server, [host.id], {
    script: writes('s', 'exit 0'),
    verify: { script: writes('v', 'exit 3'), retries: 7, intervalSeconds: 12 },
    rollback: { script: writes('r', 'exit 0') },
  })
  await until('the second attempt runs', () => starts() === 'svv')
  for (const [name, bootId] of [
    ['copied', undefined],
    ['cloned', 'another'],
  ] as const) {
    await cp(join(root, 'first'), join(root, name), { recursive: true })
    await rm(join(root, name, 'lock'), { force: true })
    await start(name, bootId)
  }
  const [result] = (await finished(server, taskId)).results
  t.log(result?.status, result?.error)
  await until('the original agent has finished', () => starts().endsWith('r'))
  // A copy would have started its own phases by now.
  await new Promise((resolve) => setTimeout(resolve, 15_000))
  t.is(starts(), 'svvvvvvvvr')
})
