import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { type AgentOptions, startAgent } from '../../../src/agent/main.ts'
import { readAgentState } from '../../../src/agent/reports/read-state.ts'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

/** A clock that holds long waits until the test releases them; it runs ten times as fast otherwise. */
function patientClock() {
  let ahead = 0
  const held = new Map<object, { delay: number; run: () => void }>()
  return {
    clock: {
      ...systemClock,
      monotonic: () => systemClock.monotonic() * 10 + ahead,
      after(delay: number, run: () => void) {
        if (delay < 200_000) return systemClock.after(delay / 10, run)
        const key = {}
        held.set(key, { delay, run })
        return () => void held.delete(key)
      },
    },
    delays: () => [...held.values()].map(({ delay }) => delay),
    release() {
      ahead += 300_000
      const due = [...held.values()]
      held.clear()
      for (const { run } of due) run()
    },
  }
}

async function enrolled(t: ExecutionContext, options: Partial<AgentOptions> = {}) {
  const server = await startTestServer(t, { heartbeatInterval: 1 })
  const dataDir = await temporaryDirectory(t)
  const tokenFile = { text: '' }
  const newToken = async () => {
    tokenFile.text = (await server.data('POST', '/api/enrollment-tokens', { maxUses: 20 })).token
  }
  await newToken()
  const time = patientClock()
  const lines: string[] = []
  const setting: AgentOptions = {
    ...agentOptions(server, dataDir),
    enrollToken: () => tokenFile.text,
    hostname: 'web1',
    clock: time.clock,
    log: (level, line, more) => lines.push(`${level} ${line} ${JSON.stringify(more)}`),
    logLevel: 'WARN',
    ...options,
  }
  const agent = await startAgent(setting)
  t.teardown(() => agent.stop())
  await until('the host is ONLINE', async () => (await hosts(server))[0]?.status === 'ONLINE')
  return { server, dataDir, agent, setting, time, lines, newToken }
}

const hosts = async (server: TestServer): Promise<Host[]> => (await server.data('GET', '/api/hosts')).content
const refusals = (lines: readonly string[]) =>
  lines.filter((line) => /not registered yet.*was (removed|revoked)/.test(line)).length

for (const onDemand of [false, true])
  for (const state of ['removed', 'revoked'] as const)
    test(`A13 a ${state} agent${onDemand ? ' on demand' : ''} keeps running, says so, retries every 5 minutes and takes a newer token from its file`, async (t) => {
      const { server, dataDir, agent, time, lines, newToken } = await enrolled(t, { onDemand })
      const [host] = await hosts(server)
      await server.data('DELETE', `/api/hosts/${host?.id}${state === 'revoked' ? '/agent' : ''}`)
      await until('the agent says why', () =>
        new RegExp(`was ${state}`).test(readAgentState(dataDir).heartbeatFault ?? ''),
      )
      for (let tries = 1; tries < 3; tries++) {
        await until('it is refused', () => refusals(lines) === tries)
        t.true(
          time.delays().every((delay) => delay === 300_000),
          String(time.delays()),
        )
        t.is((await hosts(server)).filter(({ status }) => status === 'ONLINE').length, 0)
        time.release()
      }
      await newToken()
      await until('it is refused', () => refusals(lines) === 3)
      time.release()
      await until('the agent is back', async () => {
        const [back] = await hosts(server)
        return back?.status === 'ONLINE' && back.id === agent.hostId
      })
      t.is(agent.hostId === host?.id, state === 'revoked')
      await until('the fault is cleared', () => readAgentState(dataDir).heartbeatFault === null)
      // An agent can be removed more than once.
      await server.data('DELETE', `/api/hosts/${agent.hostId}`)
      await until('its heartbeat is refused', () => (readAgentState(dataDir).heartbeatFault ?? '') !== '')
      if (refusals(lines) === 3) time.release()
      await until('it is refused again', () => refusals(lines) === 4)
      t.pass()
    })

test('A13 an agent removed before its start keeps running, also if it does not know that it was registered', async (t) => {
  const { server, dataDir, agent, setting, lines } = await enrolled(t)
  await agent.stop()
  await server.data('DELETE', `/api/hosts/${agent.hostId}`)
  const again = await startAgent(setting)
  t.teardown(() => again.stop())
  await until('it is refused', () => refusals(lines) === 1)
  await until(
    'it reports the fault',
    () => readAgentState(dataDir).heartbeatFault?.endsWith('rsm hosts join') === true,
  )
  await again.stop()
  const { agentId } = agent
  writeFileSync(join(dataDir, 'identity.json'), JSON.stringify({ agentId, registration: null }))
  const stop = new AbortController()
  const starting = startAgent({ ...setting, signal: stop.signal })
  await until('it is refused', () => refusals(lines) === 2)
  await until('it reports the reason', () =>
    /was removed.*rsm hosts join$/.test(readAgentState(dataDir).reason ?? ''),
  )
  stop.abort()
  await t.throwsAsync(starting, { message: /stopped before it was registered/ })
  t.is((await hosts(server)).length, 0)
})
