import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { knownSchema, migrationLock } from '../../../src/server/storage/postgres/schema/migrations.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { entries, finished, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, recordingOf, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

/** A version with one more migration. */
const newer = fileURLToPath(new URL('../../fixtures/newer-server-process.js', import.meta.url))
const newest = knownSchema() + 1
/** No release has an earlier schema, so this build stands in for the previous version. */
const formerSchema = knownSchema()

const postgres = sharedPostgres()

/** Writes, with a server of the previous version, agents, a finished task, a running one and a recording. */
async function fill(server: Awaited<ReturnType<typeof startServerProcess>>) {
  const [web1, web2] = [await server.enroll('web1'), await server.enroll('web2')]
  const one = await ScriptedAgent.link(server, web1, withTerminals)
  const two = await ScriptedAgent.link(server, web2)
  const both = await startTask(server, [web1.hostId, web2.hostId])
  for (const [agent, exitCode] of [
    [one, 0],
    [two, 3],
  ] as const) {
    await agent.execution(both)
    agent.output(both, 0, `ended with ${exitCode}\n`)
    agent.complete(both, exitCode, { lastSequence: 0 })
  }
  await finished(server, both)

  const { sessionId } = await openTerminal(server, one, web1.hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  await client.next('TERMINAL_ATTACHED')
  one.send('TERMINAL_OUTPUT', { sessionId, sequence: 0, data: 'recorded' })
  await client.shows('recorded')
  one.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
  await client.closed

  const open = await startTask(server, [web1.hostId], { timeout: 86_400 })
  await one.execution(open)
  one.output(open, 0, 'before\n')
  await one.acknowledged(open, 0)
  return { web1, web2, both, open, sessionId }
}

/** A store that the previous version wrote, and functions that start servers of that version and of a newer one. */
async function site(t: ExecutionContext) {
  const store = await (await postgres).database({ migrated: false })
  const database = openDatabase(t, store)
  const keysDir = join(temporaryDirectory(t), 'keys')
  const start = (serverName: string, more: { program?: string } = {}) =>
    startServerProcess(t, { ...more, logLevel: 'INFO', options: { store, keysDir, serverName } })
  const left = await start('server1')
  const facts = await fill(left)
  await left.kill()
  return {
    database,
    store,
    keysDir,
    facts,
    before: (name: string) => start(name),
    after: (name: string) => start(name, { program: newer }),
    schema: async () => {
      const [row] = await database.ask<{ schema: number }>('api', 'select schema from rsm.cluster')
      return row?.schema
    },
    indexes: async () => {
      const text = `select indexname as name from pg_indexes where schemaname = 'rsm' and tablename = 'remains' order by 1`
      return (await database.ask<{ name: string }>('api', text)).map(({ name }) => name)
    },
  }
}

test.serial(
  'F29 servers of the previous version and of this one work on one store during an upgrade',
  async (t) => {
    const { database, facts, before, after, schema, indexes } = await site(t)
    const old = await before('server1')
    t.is(await schema(), formerSchema)
    const running = (last: number) => ({
      tasks: [{ taskId: facts.open, state: 'RUNNING' as const, lastSequence: last }],
    })
    const one = await ScriptedAgent.link(old, facts.web1, running(0))
    one.output(facts.open, 1, 'by the old server\n')
    await one.acknowledged(facts.open, 1)

    // Both wait for the lock on the schema: if each changed it, one would fail.
    const turn = await database.connect(true)
    await turn.query('select pg_advisory_lock($1)', [migrationLock])
    const starting = Promise.all([after('server2'), after('server3')])
    await until('two servers wait', async () => {
      const text = `select from pg_locks where locktype = 'advisory' and objid = $1 and not granted
        and database = (select oid from pg_database where datname = current_database())`
      return (await database.ask('api', text, [migrationLock])).length === 2
    })
    t.is(await schema(), formerSchema)
    await turn.end()
    const [first, second] = await starting
    t.is(await schema(), newest)
    t.deepEqual(await indexes(), ['remains_aside', 'remains_gated', 'remains_pkey', 'remains_there'])

    t.deepEqual(statusesOf(await task(first, facts.both)), ['SUCCESS', 'FAILED'])
    t.deepEqual((await entries(second, facts.both)).map(({ data }) => data).toSorted(), [
      'ended with 0\n',
      'ended with 3\n',
    ])
    t.true((await recordingOf(first, facts.sessionId)).output.startsWith('recorded'))

    one.output(facts.open, 2, 'by the old server on the new schema\n')
    await one.acknowledged(facts.open, 2)
    await one.cut()
    const again = await ScriptedAgent.link(first, facts.web1, running(2))
    again.output(facts.open, 3, 'by the new server\n')
    await again.acknowledged(facts.open, 3)
    const written = async (server: typeof old) => (await entries(server, facts.open)).map(({ data }) => data)
    const all = [
      'before\n',
      'by the old server\n',
      'by the old server on the new schema\n',
      'by the new server\n',
    ]
    t.deepEqual(await written(old), all)
    t.deepEqual(await written(second), all)

    const gates = { script: { content: 'deploy' }, verify: { script: { content: 'true' } } }
    const gated = await startTask(first, [facts.web2.hostId], { ...gates, queueSeconds: 60 })
    // A server that does not know gates would run this script.
    const text = `select rec->>'content' as content from rsm.tasks where id = $1`
    const [record] = await database.ask<{ content: string }>('api', text, [gated])
    t.regex(record?.content ?? '', /this server is too old to verify or roll back/)
    const two = await ScriptedAgent.link(old, facts.web2, { capabilities: { gates: true } })
    two.serve(() => ({ output: 'two\n' }))
    const sent = await two.execution(gated)
    t.is(sent.script, 'deploy')
    t.is(sent.verify?.script, 'true')
    await finished(first, gated)
    for (const server of [old, first]) {
      const taskId = await startTask(server, [facts.web2.hostId])
      t.deepEqual(statusesOf(await finished(server, taskId)), ['SUCCESS'])
      for (const reader of [old, first, second])
        t.deepEqual(
          (await entries(reader, taskId)).map(({ data }) => data),
          ['two\n'],
        )
    }

    // The old server's task continues at a new server.
    await old.kill()
    again.complete(facts.open, 0, { lastSequence: 3 })
    t.deepEqual(statusesOf(await finished(second, facts.open)), ['SUCCESS'])

    // The schema allows servers of the previous version.
    await old.start()
    t.deepEqual(statusesOf(await task(old, facts.open)), ['SUCCESS'])
    const back = await ScriptedAgent.link(old, facts.web2)
    back.serve()
    const taskId = await startTask(old, [facts.web2.hostId])
    t.deepEqual(statusesOf(await finished(first, taskId)), ['SUCCESS'])
    await soundAudit(t, second)

    // The schema no longer allows them.
    await old.kill()
    await database.ask('api', 'update rsm.cluster set oldest_server = $1', [newest])
    await t.throwsAsync(old.start(), {
      message: new RegExp(`its schema is number ${newest}, of a newer rsm; this one knows ${formerSchema}`),
    })
    await first.restart()
    t.deepEqual(statusesOf(await task(first, taskId)), ['SUCCESS'])
  },
)

test.serial(
  "F29 a migration that fails halfway changes nothing, and reports PostgreSQL's error",
  async (t) => {
    const { database, facts, before, after, schema, indexes } = await site(t)
    const old = await before('server1')
    // The last statement of the migration creates this table.
    await database.ask('api', 'create table rsm.added()')
    await t.throwsAsync(after('server2'), {
      message: new RegExp(
        `PostgreSQL refuses migration ${newest} of its schema: relation "added" already exists`,
      ),
    })
    t.is(await schema(), formerSchema)
    t.deepEqual(await indexes(), ['remains_aside', 'remains_pkey', 'remains_there'])
    const agent = await ScriptedAgent.link(old, facts.web2)
    agent.serve()
    const taskId = await startTask(old, [facts.web2.hostId])
    t.deepEqual(statusesOf(await finished(old, taskId)), ['SUCCESS'])
    await database.ask('api', 'drop table rsm.added')
    const now = await after('server2')
    t.is(await schema(), newest)
    t.deepEqual(statusesOf(await task(now, taskId)), ['SUCCESS'])
  },
)

test.serial('F29 a running server stops in order when the schema becomes too new for it', async (t) => {
  const { database, store, keysDir, facts } = await site(t)
  const home = temporaryDirectory(t)
  const where = ['--store', store, '--keys', keysDir, '--server-name', 'server1', '--data-dir', home]
  const server = startRsm(['server', 'start', '--port', '0', ...where], cleanEnv(home))
  t.teardown(() => server.child.kill('SIGKILL'))
  await server.shows('listening on')
  const [, url = ''] = /listening on (\S+)/.exec(server.out.stdout) ?? []
  const tasks = [{ taskId: facts.open, state: 'RUNNING' as const, lastSequence: 0 }]
  const agent = await ScriptedAgent.link({ url }, facts.web1, { tasks })
  await until(
    'the server owns the task',
    async () => (await database.ask('api', 'select from rsm.task_owners')).length === 1,
  )
  await database.ask('api', 'update rsm.cluster set schema = $1, oldest_server = $1', [newest])
  t.is((await agent.closed).code, 1001)
  const { exit, stderr } = await server.done
  t.is(exit, 6)
  const said = `its schema is number ${newest}, of a newer rsm; this one knows ${knownSchema()}`
  t.regex(stderr, new RegExp(`"msg":"\\S+: ${said}: this server stops"`))
  t.regex(stderr, new RegExp(`^rsm: \\S+: ${said}\n +start the newer rsm`, 'm'))
  t.deepEqual(await database.ask('api', 'select name from rsm.servers'), [], 'its tasks are free at once')
  const [last] = await database.ask<{ line: string }>(
    'api',
    'select line from rsm.audit order by id desc limit 1',
  )
  t.is(JSON.parse(last?.line ?? '').action, 'server.stop')
})
