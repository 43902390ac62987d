import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { Shared } from '../../../src/server/storage/ports/cluster.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { sharedKeysAsText, sharedRelay } from '../../helpers/servers/relays.ts'
import { idleAttachment, noSite } from '../../helpers/terminals/no-site.ts'
import { notedClient } from '../../helpers/terminals/noted-client.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()
const newDatabase = async () => (await postgres).database()
const attach = { after: null, watch: false }
const program = fileURLToPath(new URL('../../fixtures/relay-server.js', import.meta.url))

const setLease = (database: Database, left: string) =>
  database.ask(
    'api',
    `update rsm.servers set lease_until = rsm.now() + interval '${left}' where name = 'other'`,
  )

/** Only the death of a server that was seen is noticed before its connections time out. */
const seen = (neighbours: Shared['neighbours']) =>
  until('the other server is seen', () => neighbours.others().size === 1)

/** Another server process, which serves the session `s1` or attaches to it; resolves when it is ready. */
async function otherServer(t: ExecutionContext, url: string, how: 'serve' | 'attach'): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, url, sharedKeysAsText, how], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(createInterface({ input: child.stdout }), 'line')
  return child
}

/** A server with the session s1. It counts attachments that ended. */
async function serving(t: ExecutionContext, url: string) {
  const own = await sharedRelay(t, url, 'a')
  const state = { gone: 0 }
  await own.serve({
    ...noSite,
    has: async (id) => id === 's1',
    attach(_, client) {
      client.output(0, Buffer.from('"attached"'), () => undefined)
      return { ...idleAttachment, gone: () => void state.gone++ }
    },
  })
  return { ...own, state }
}

test("clients stay attached while PostgreSQL restarts, and looking up a session's server fails as unavailable meanwhile", async (t) => {
  const own = await startPostgres(atExit)
  const url = await own.database()
  const { state } = await serving(t, url)
  const { relay } = await sharedRelay(t, url, 'b')
  const there = await relay.having('s1')
  const { client, heard } = notedClient()
  there?.attach('s1', client, attach)
  own.stop('immediate')
  await t.throwsAsync(relay.having('s1'), { code: 'unavailable' })
  t.true(await there?.has('s1'))
  own.start()
  await until('the session is found again', async () => (await relay.having('s1').catch(() => null)) !== null)
  t.deepEqual([heard, state.gone], [['output 0 "attached"'], 0])
})

test('P42 when the server of a session is killed its client is closed, and a pending call fails as unavailable', async (t) => {
  const url = await newDatabase()
  const { relay } = await sharedRelay(t, url, 'a')
  const child = await otherServer(t, url, 'serve')
  const there = await relay.having('s1')
  const { client, heard } = notedClient()
  const attachment = there?.attach('s1', client, attach)
  attachment?.input('echo', 'f')
  await until('the session echoes', () => heard.length === 1)
  const asked = t.throwsAsync(async () => there?.end('never', ''), { code: 'unavailable' })
  child.kill('SIGKILL')
  await until('the client is notified', () => heard.length === 2)
  t.deepEqual(heard, ['output 0 "echo"', 'closed 1001 the connection to the server of the session was lost'])
  await asked
  await until(
    'no server has the session',
    async () => (await relay.having('s1').catch(() => undefined)) === null,
  )
})

test('P42 when the server of a client is killed its attachment ends', async (t) => {
  const url = await newDatabase()
  const { state } = await serving(t, url)
  const child = await otherServer(t, url, 'attach')
  child.kill('SIGKILL')
  await until('the terminal is notified', () => state.gone > 0)
  t.is(state.gone, 1)
})

test('a server suspended past its lease blocks no call, and its clients are closed; once resumed it is found again', async (t) => {
  const url = await newDatabase()
  const { relay, database, neighbours } = await sharedRelay(t, url, 'a')
  const child = await otherServer(t, url, 'serve')
  const there = await relay.having('s1')
  const { client, heard } = notedClient()
  there?.attach('s1', client, attach)
  await there?.has('s1')
  await seen(neighbours)
  child.kill('SIGSTOP')
  const asked = relay.having('s1')
  await setLease(database, '-1 s')
  await until('its client is closed', () => heard.length === 1)
  t.is(await asked, null)
  t.is(await relay.having('s1'), null)
  await setLease(database, '1 hour')
  child.kill('SIGCONT')
  const again = await relay.having('s1')
  const { client: next, heard: nextHeard } = notedClient()
  again?.attach('s1', next, attach).input('echo', 'f')
  await until('the session echoes', () => nextHeard.length === 1)
  t.deepEqual(nextHeard, ['output 0 "echo"'])
})

test('clients of a server that was suspended past its lease are closed when it resumes', async (t) => {
  const url = await newDatabase()
  const { database, neighbours, state } = await serving(t, url)
  const child = await otherServer(t, url, 'attach')
  await seen(neighbours)
  child.kill('SIGSTOP')
  await setLease(database, '-1 s')
  await until('the terminal is notified', () => state.gone === 1)
  child.kill('SIGCONT')
  if (!child.stdout) throw new Error('stdout is not piped')
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  t.is(line, 'closed 1001')
})
