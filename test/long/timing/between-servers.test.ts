import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { hintingServers } from '../../helpers/servers/hinting-servers.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { sharedKeysAsText, sharedRelay } from '../../helpers/servers/relays.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { execution, task } from '../../helpers/servers/store-records.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
const program = fileURLToPath(new URL('../../fixtures/relay-server.js', import.meta.url))

/** Two servers of one store; with `deaf`, neither receives hints of the other. */
async function two(t: ExecutionContext, how: 'hear' | 'deaf') {
  const { store, server } = await hintingServers(t, postgres)
  async function open(name: string) {
    const own = await executingServer(store, name, how === 'hear' ? (await server(name)).hints : undefined)
    t.teardown(() => own.close())
    const member = await own.ownership.join(name)
    const superseded: number[] = []
    const claim = (hostId: number) =>
      own.links.claim(hostId, { server: member, agentId: 'agent' }, () => superseded.push(hostId))
    return { ...own, member, claim, superseded }
  }
  return [await open('a'), await open('b')] as const
}

test('P12 the previous holder learns at once of a newer claim at another server', async (t) => {
  const [a, b] = await two(t, 'hear')
  const hostIds = [1, 2, 3, 4, 5]
  for (const hostId of hostIds) await a.claim(hostId)
  const began = performance.now()
  for (const hostId of hostIds) {
    await b.claim(hostId)
    await until('the previous holder learns of the claim', () => a.superseded.includes(hostId))
  }
  const took = performance.now() - began
  // Polling once a second would take as many seconds.
  t.true(took < 1_000, `${took} ms`)
})

test('P12 F28 without hints a previous holder learns of newer claims within 5 s, however many links it holds', async (t) => {
  const [a, b] = await two(t, 'deaf')
  await Promise.all(Array.from({ length: 3_000 }, (_, at) => a.claim(at + 1)))
  await b.claim(1)
  await b.claim(3_000)
  await until('the previous holder learns of both claims', () => a.superseded.length === 2, 5_000)
  t.deepEqual(new Set(a.superseded), new Set([1, 3_000]))
})

test("F28 another server's change is visible within 3 s without hints", async (t) => {
  const [a, b] = await two(t, 'deaf')
  await a.ownership.claim(a.member, ['t1'])
  const due = { ...execution('t1', 1), dueAt: '2026-01-01T00:00:00.000Z' }
  await a.executions.create(task('t1'), [due], async () => null)
  const claimed = await b.claim(1)
  if (!claimed) return t.fail('the claim was refused')
  const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
  t.is((await b.executions.take([{ claim: claimed.claim, capacity: 1, agent }])).length, 1)
  await a.executions.cancel('t1')
  const isKnown = async () => (await b.executions.find('t1', 1))?.execution.cancelRequested === true
  await until('the change is visible', isKnown, 3_000)
})

test('P42 when the server of a session is killed its client is closed within 3 s', async (t) => {
  const url = await (await postgres).database()
  const { relay } = await sharedRelay(t, url, 'a')
  const other = spawn(process.execPath, [program, url, sharedKeysAsText, 'serve'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => other.kill('SIGKILL'))
  await once(other.stdout, 'data')
  const { client, heard } = notedClient()
  const there = await relay.having('s1')
  there?.attach('s1', client, { after: null, watch: false }).input('echo', 'f')
  await until('the session echoes', () => heard.length === 1)
  other.kill('SIGKILL')
  const killed = performance.now()
  await until('the client is notified', () => heard.length === 2)
  const took = performance.now() - killed
  t.true(took < 3_000, `${took} ms`)
  t.is(heard[1], 'closed 1001 the connection to the server of the session was lost')
})
