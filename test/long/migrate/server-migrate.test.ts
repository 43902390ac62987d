import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Metrics } from '../../../src/core/hosts/host.ts'
import { createFileOutputs } from '../../../src/server/storage/files/outputs/file-outputs.ts'
import { readDirectory } from '../../../src/server/storage/files/streams/reader.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { readPostgres } from '../../../src/server/storage/postgres/streams/reader.ts'
import { encodeSample } from '../../../src/server/storage/samples.ts'
import { differing, sumsOf } from '../../../src/server/storage/stream-sums.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { sendBytes, upload } from '../../helpers/clients/files.ts'
import { entries, finished, running, startTask, task } from '../../helpers/clients/tasks.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { atExit, type Postgres, postgresTest, startPostgres } from '../../helpers/servers/postgres.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

// Serial: each test runs many processes and has its own timeout.
const test = postgresTest.serial

let postgres: Promise<Postgres> | undefined
async function emptyDatabase(): Promise<string> {
  postgres ??= startPostgres(atExit)
  return (await postgres).database({ migrated: false })
}

function commandLine(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  return {
    home,
    migrate: (...argv: string[]) => runRsm(['server', 'migrate', ...argv], env),
    startMigrate: (...argv: string[]) => startRsm(['server', 'migrate', ...argv], env),
    start: (...argv: string[]) => runRsm(['server', 'start', '--port', '0', ...argv], env),
  }
}

/** Digests of all files of a directory except its lock, by name. */
async function filesOf(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && entry.name !== 'lock')
      found[path.slice(directory.length)] = createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
  }
  return found
}

const day = 24 * 3600_000
const began = Date.now()
const dayBefore = (days: number) => new Date(began - days * day).toISOString()

/** Uploads of all servers of this file, which run one after the other. */
let uploads: { fileId: string }[] = []

/** A task without its server: one with a store of its own has no name. */
const ofAnyServer = (task: Record<string, unknown>) => ({ ...task, server: undefined })

/** State of a server as users see it, without values that change on their own. */
async function seen(server: ServerProcess, taskIds: readonly string[], hostId: number, sessionId: string) {
  const files = []
  for (const { fileId } of uploads) files.push(await server.data('GET', `/api/files/${fileId}`))
  const [since, until] = [dayBefore(7), dayBefore(0.01)]
  const all = (path: string) => server.data('GET', path)
  const tasks = []
  for (const id of taskIds) tasks.push([ofAnyServer(await task(server, id)), await entries(server, id)])
  const { body } = await server.api('GET', `/api/terminals/${sessionId}/recording`)
  const { samples } = await all(`/api/hosts/${hostId}/metrics?from=${since}&to=${until}`)
  const { authType, username, agentId, createdAt, tags, agent } = await all('/api/hosts/2')
  return {
    tasks,
    files,
    list: (await all('/api/tasks?size=100')).content.map(ofAnyServer),
    scripts: await all('/api/scripts?size=100'),
    versions: await all('/api/scripts/1/versions'),
    clusters: await all('/api/clusters'),
    users: await all('/api/users'),
    enrollments: await all('/api/enrollment-tokens'),
    host: {
      authType,
      username,
      agentId,
      createdAt,
      tags,
      heardAt: agent.lastHeartbeatAt,
      version: agent.version,
    },
    metrics: samples.map(({ cpu, memory, disk, network }: Metrics) => ({ cpu, memory, disk, network })),
    terminal: await all(`/api/terminals/${sessionId}`),
    recording: body.data,
  }
}

const shell = (text: string) => ({ script: { content: text } })

/** A server with an example of everything that it stores. */
async function filled(t: ExecutionContext) {
  const server = await startServerProcess(t)
  const { hostId } = await realAgent(t, server, { hostname: 'web1' })
  const offline = await server.enroll('web2')
  const scripted = await server.enroll('web3')
  const agent = await ScriptedAgent.link(server, scripted, { capabilities: { terminal: true } })
  agent.serveTerminals()
  const { sessionId } = await server.data('POST', '/api/terminals', {
    hostId: scripted.hostId,
    cols: 80,
    rows: 24,
  })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'gesehen: ä 😀\r\n', sequence: 0 })
  await until('the output is recorded', async () => {
    const { body } = await server.api('GET', `/api/terminals/${sessionId}/recording`)
    return String(body.data).includes('gesehen: ä 😀')
  })
  await server.api('DELETE', `/api/terminals/${sessionId}`)
  await until('the terminal has ended', async () => {
    return (await server.data('GET', `/api/terminals/${sessionId}`)).status !== 'OPEN'
  })
  await server.data('PATCH', `/api/hosts/${offline.hostId}`, {
    authType: 'PASSWORD',
    username: 'root',
    password: 'sealed',
    tags: { env: 'prod' },
  })
  const { id: scriptId } = await server.data('POST', '/api/scripts', {
    name: 'deploy',
    type: 'BASH',
    content: 'echo 1',
  })
  for (const content of ['echo ä', 'echo 3'])
    await server.data('PATCH', `/api/scripts/${scriptId}`, { content })
  uploads = [
    await upload(server, 'equal ä'),
    await upload(server, 'equal ä'),
    await upload(server, 'secret', 'secret=true'),
    (await sendBytes(server, 'POST', '/api/files')).data,
  ]
  await sendBytes(server, 'PUT', `/api/files/${uploads[3]?.fileId}?offset=0`, 'begun')
  await server.data('POST', '/api/clusters', { name: 'all', hostIds: [hostId, offline.hostId] })
  await server.data('POST', '/api/users', { username: 'eve', password: 'a password for eve', role: 'VIEWER' })
  const text =
    'for n in $(seq 300); do echo "$n größer 😀"; echo "$n ünd" >&2; done; printf \'ohne Ende \\001\''
  const ended = await startTask(server, [hostId], shell(text))
  await finished(server, ended)
  return { server, hostId, offline, scripted, agent, sessionId, ended }
}

const sample = (at: number): Metrics => ({
  timestamp: new Date(at).toISOString(),
  cpu: { usagePercent: 1.5, loadAvg1m: 0.25, loadAvg5m: 1, loadAvg15m: 2 },
  memory: { totalMB: 2000, usedMB: 500, availableMB: 1500, usagePercent: 25 },
  disk: [{ mountPoint: '/größe', totalGB: 10, usedGB: 1, usagePercent: 10 }],
  network: { rxBytesPerSec: 1, txBytesPerSec: 2, connections: 3 },
})

/** Writes samples of a host with these times; returns their directory. */
async function writeSamples(dataDir: string, hostId: number, times: readonly number[]): Promise<string> {
  const metrics = join(dataDir, 'metrics', String(hostId))
  await mkdir(metrics, { recursive: true })
  for (const at of times) {
    const file = join(metrics, `${new Date(at).toISOString().slice(0, 10)}.jsonl`)
    appendFileSync(file, `\n${encodeSample(at, sample(at))}`)
  }
  return metrics
}

/** Options of a server on a database, with its own data directory. */
const onStore = (store: string, keysDir: string, dataDir: string) => ({
  SERVER_OPTIONS: JSON.stringify({ store, keysDir, dataDir, serverName: 'a' }),
})

/** Damages a line in the middle, and adds a line that was never an entry after it. */
async function damageLine(file: string): Promise<Buffer> {
  const lines = (await readFile(file, 'latin1')).split('\n')
  const middle = Math.floor(lines.length / 2)
  lines[middle] = `{"id":\xff\x00${lines[middle]?.slice(20)}`
  lines.splice(middle + 3, 0, 'nothing')
  await writeFile(file, lines.join('\n'), 'latin1')
  return readFile(file)
}

async function auditOf(server: ServerProcess): Promise<Buffer> {
  const headers = { authorization: `Bearer ${server.token}`, accept: 'application/x-ndjson' }
  const answer = await fetch(`${server.url}/api/audit`, { headers })
  return Buffer.from(await answer.arrayBuffer())
}

/** The number of samples of all hosts. */
async function samplesIn(dataDir: string): Promise<number> {
  const metrics = join(dataDir, 'metrics')
  const texts = await Promise.all((await readdir(metrics)).map((host) => textIn(join(metrics, host))))
  return texts.flatMap((text) => text.match(/^.+$/gm) ?? []).length
}

/** The text of all files of a directory. */
async function textIn(directory: string): Promise<string> {
  const names = (await readdir(directory)).sort()
  return (await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')))).join('')
}

const startsWith = (whole: Buffer, begin: Buffer) => whole.subarray(0, begin.length).equals(begin)

test('a server moves to PostgreSQL and back with all its data, and a running task continues once', async (t) => {
  t.timeout(110_000)
  const { server, hostId, offline, agent, sessionId, ended } = await filled(t)
  const { home, migrate, start } = commandLine(t)
  const [gate, journal] = [join(home, 'gate'), join(home, 'journal')]
  const script = `echo start >> ${journal}; echo begönne; while [ ! -e ${gate} ]; do sleep 0.1; done; echo fertig`
  const open = await startTask(server, [hostId], shell(script))
  await running(server, open)
  await until(
    'the script runs',
    async () => existsSync(journal) && (await entries(server, open)).length === 1,
  )
  const waiting = await startTask(server, [offline.hostId], { ...shell('true'), queueSeconds: 3600 })
  const from = server.dataDir
  // A host without an agent: no other samples of it are written, however long this takes.
  const metrics = await writeSamples(from, offline.hostId, [
    began - 3600_000,
    began - 3590_000,
    began - 2 * day,
  ])
  const written = await textIn(metrics)
  const tasks = [ended, waiting]
  const before = await seen(server, tasks, offline.hostId, sessionId)
  await agent.cut()
  t.is((await server.terminate()).code, 0)
  const audit = await damageLine(join(from, 'audit', 'audit.log'))
  const files = await filesOf(from)

  const store = await emptyDatabase()
  const there = await migrate('--from', from, '--store', store, '--json')
  t.is(there.exit, 0, there.stderr)
  const moved = JSON.parse(there.stdout)
  t.like(moved.moved, {
    hosts: 3,
    users: 2,
    scripts: 1,
    tasks: 3,
    versions: 2,
    terminals: 1,
    recordings: 1,
    executions: 2,
    samples: await samplesIn(from),
  })
  t.is(moved.moved.auditBytes, audit.length)
  const { '/postgres.json': _, ...left } = await filesOf(from)
  t.deepEqual(left, files, 'the source is unchanged')
  const refused = await start('--data-dir', from)
  t.is(refused.exit, 6)
  t.regex(refused.stderr, /belongs to a server whose store is postgres:\/\/rsm@/)

  const keys = join(from, 'keys')
  await server.start(onStore(store, keys, join(home, 'a')))
  t.deepEqual(await seen(server, tasks, offline.hostId, sessionId), before)
  t.true(startsWith(await auditOf(server), audit))
  t.is((await task(server, open)).status, 'RUNNING')
  const cursor = (await entries(server, open)).at(-1)?.id
  await until(
    'the agent is linked',
    async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent?.connected === true,
  )
  await writeFile(gate, '')
  t.is((await finished(server, open)).status, 'SUCCESS')
  const output = await entries(server, open)
  t.is(output.map(({ data }) => data).join(''), 'begönne\nfertig\n')
  t.is(output[0]?.id, cursor)
  t.is(readFileSync(journal, 'utf8'), 'start\n')
  const later = await startTask(server, [hostId], shell('echo später'))
  await finished(server, later)
  const all = [...tasks, open, later]
  const onPostgres = await seen(server, all, offline.hostId, sessionId)
  t.is((await server.terminate()).code, 0)

  const to = join(home, 'back')
  const back = await migrate('--from', store, '--to', to)
  t.is(back.exit, 0, back.stderr)
  t.regex(
    back.stdout,
    /: moved to .*back, and compared there\nhosts 3, users 2, scripts 1, tasks 4, output \d+, recordings 1, audit \d+\n/,
  )
  t.regex(back.stderr, /copy the keys of the servers to .*back\/keys/)
  const moves = await start(
    '--store',
    store,
    '--keys',
    keys,
    '--server-name',
    'a',
    '--data-dir',
    join(home, 'a'),
  )
  t.is(moves.exit, 6)
  t.regex(moves.stderr, /this store has moved to .*back/)
  const log = await readFile(join(to, 'audit', 'audit.log'))
  t.true(startsWith(log, audit))
  await cp(keys, join(to, 'keys'), { recursive: true })
  await server.start({ SERVER_OPTIONS: JSON.stringify({ dataDir: to }) })
  t.deepEqual(await seen(server, all, offline.hostId, sessionId), onPostgres)
  const again = await startTask(server, [hostId])
  t.is((await finished(server, again)).status, 'SUCCESS')
  t.true(again > later)
  t.is((await server.data('POST', '/api/scripts', { name: 'next', type: 'BASH', content: 'true' })).id, 2)
  t.true(startsWith(await auditOf(server), log))
  t.is((await stat(to)).mode & 0o777, 0o700)
  t.is(await textIn(join(to, 'metrics', String(offline.hostId))), written)
})

/** The data directory of a stopped server with much output. */
async function large(t: ExecutionContext): Promise<string> {
  const { server, ended, agent } = await filled(t)
  await agent.cut()
  await server.terminate()
  const outputs = createFileOutputs(join(server.dataDir, 'tasks'), createLocalHints(), (error) =>
    t.fail(String(error)),
  )
  const timestamp = new Date().toISOString()
  await Promise.all(
    Array.from({ length: 4000 }, (_, sequence) =>
      outputs.append(ended, {
        hostId: 1,
        stream: 'stdout',
        sequence: 1000 + sequence,
        timestamp,
        data: 'ä'.repeat(4000),
      }),
    ),
  )
  await outputs.close()
  return server.dataDir
}

test('a killed migration leaves the source unchanged and a target on which no server starts; the next one starts over', async (t) => {
  t.timeout(110_000)
  const from = await large(t)
  const { home, migrate, startMigrate, start } = commandLine(t)
  const files = await filesOf(from)
  const store = await emptyDatabase()
  const cut = startMigrate('--from', from, '--store', store)
  await cut.shows('moved: results')
  cut.child.kill('SIGSTOP')
  const onTarget = [
    '--store',
    store,
    '--keys',
    join(from, 'keys'),
    '--server-name',
    'a',
    '--data-dir',
    join(home, 'a'),
  ]
  const early = await start(...onTarget)
  t.is(early.exit, 6)
  t.regex(early.stderr, /rsm server migrate is moving this store\n.*when it has finished/)
  const refused = async (says: RegExp) => {
    const ran = await migrate('--from', store, '--to', join(home, 'refused'))
    t.is(ran.exit, 6)
    t.regex(ran.stderr, says)
  }
  await refused(/another rsm server migrate is running on this store\n.*wait until it has finished/)
  cut.child.kill('SIGKILL')
  await cut.done
  t.deepEqual(await filesOf(from), files)
  await until('the lock of the killed migration is released', async () => {
    const started = await start(...onTarget)
    t.is(started.exit, 6)
    return started.stderr.includes('to this store is incomplete')
  })
  await refused(/to this store is incomplete\n.*run the same rsm server migrate again/)
  const again = await migrate('--from', from, '--store', store)
  t.is(again.exit, 0, again.stderr)

  const to = join(home, 'back')
  const cutBack = startMigrate('--from', store, '--to', to)
  await cutBack.shows('moved: results')
  cutBack.child.kill('SIGKILL')
  await cutBack.done
  t.false(existsSync(to))
  const { '/postgres.json': _, ...left } = await filesOf(from)
  t.deepEqual(left, files)
  let back = await migrate('--from', store, '--to', to)
  await until('the lock of the killed migration is released', async () => {
    if (back.exit !== 0) back = await migrate('--from', store, '--to', to)
    return back.exit === 0
  })
  await refused(/this store has moved to .*back\n.*start a server with that directory/)
  await rm(join(from, 'postgres.json'))
  const [original, returned] = [await sumsIn(from), await sumsIn(to)]
  t.deepEqual(differing(original, returned), [])
  t.true(original.output.bytes > 32_000_000)
})

const sumsIn = async (directory: string) => sumsOf((await readDirectory(directory)).reader, () => undefined)

test('the comparison finds every kind of difference in the target', async (t) => {
  t.timeout(110_000)
  const { server, agent, hostId } = await filled(t)
  await agent.cut()
  await server.terminate()
  const from = server.dataDir
  await writeSamples(from, hostId, [began])
  const { migrate } = commandLine(t)
  const store = await emptyDatabase()
  t.is((await migrate('--from', from, '--store', store)).exit, 0)
  const database = openDatabase(t, store)
  const original = await sumsIn(from)
  const found = async () => differing(original, await sumsOf(readPostgres(database), () => undefined))
  t.deepEqual(await found(), [])
  const changes: readonly (readonly [kind: string, change: string])[] = [
    ['identity', "select setval('rsm.hosts_ids', 99)"],
    ['records', 'update rsm.users set rec = (rec::jsonb || \'{"role": "ADMIN"}\')::json where id = 2'],
    ['results', 'update rsm.results set rec = rec || \'{"exitCode": 1}\''],
    ['versions', 'delete from rsm.script_versions where version = 2'],
    ['output', 'update rsm.outputs set id = id + 1 where id = (select max(id) from rsm.outputs)'],
    [
      'recordings',
      "update rsm.recording_chunks set data = data || ' '::bytea; update rsm.recordings set bytes = bytes + 1",
    ],
    ['audit', "update rsm.audit set line = replace(line, 'SUCCESS', 'FAILED') where id = 3"],
    ['heads', 'update rsm.audit_head set id = id + 1'],
    ['presence', `update rsm.presence set standing = '{"status":"ONLINE","reason":"x"}' where host_id = 2`],
    ['metrics', 'delete from rsm.metrics_packed'],
  ]
  const seen: string[] = []
  for (const [kind, change] of changes) {
    for (const one of change.split('; ')) await database.ask('api', one)
    seen.push(kind)
    t.deepEqual(await found(), seen, kind)
  }
})

test('a migration that cannot work is refused before anything is written, with advice', async (t) => {
  t.timeout(110_000)
  const { server, agent, ended } = await filled(t)
  await agent.cut()
  const from = server.dataDir
  const { home, migrate } = commandLine(t)
  const store = await emptyDatabase()
  const refused = async (argv: readonly string[], exit: number, ...says: RegExp[]) => {
    const ran = await migrate(...argv)
    t.is(ran.exit, exit, `${argv.join(' ')}: ${ran.stderr}`)
    for (const one of says) t.regex(ran.stderr, one)
    t.is(ran.stdout, '')
  }
  const there = ['--from', from, '--store', store]
  await refused(there, 6, /in use|another process/)
  await server.terminate()
  const files = await filesOf(from)
  const host = store.replace(/\/[^/]*$/, '')
  await refused(
    ['--from', join(home, 'none'), '--store', store],
    5,
    /is not that of a server: it has no store\n.*--from/,
  )
  await refused([...there, '--keys', home], 6, /seal\.key is missing.*\n.*--keys/)
  await refused(['--from', from, '--store', `${host}/none`], 6, /database "none" does not exist/)
  await refused(['--from', store, '--to', join(home, 'x')], 6, /no rsm store found/)

  const other = await emptyDatabase()
  const keys = join(home, 'keys')
  await server.start(onStore(other, keys, join(home, 'a')))
  await refused(['--from', from, '--store', other], 6, /server a at http.* is running on/, /stop all servers/)
  await refused(['--from', other, '--to', join(home, 'x')], 6, /server a at http.* is running on/)
  await server.kill()
  await refused(
    ['--from', from, '--store', other],
    6,
    /is not empty: it has the store .* with 0 hosts, 1 users and 0 tasks/,
  )
  await refused(['--from', other, '--to', from], 6, /is the data directory of a server/)
  t.false(existsSync(join(home, 'x')))
  const database = openDatabase(t, other)
  await database.ask('api', 'update rsm.cluster set schema = 0')
  await refused(
    ['--from', other, '--to', join(home, 'x')],
    6,
    /its schema is number 0, and this rsm reads number/,
  )
  t.deepEqual(await filesOf(from), files)

  const log = join(from, 'tasks', ended, 'output.log')
  const output = await readFile(log)
  await writeFile(log, Buffer.from(output).fill('#', 300, 310))
  await refused(there, 6, /is damaged: the output is damaged: .*output\.log/, /rsm server doctor/)
  await writeFile(log, output)
  const results = join(from, 'tasks', ended, 'task.json')
  const json = await readFile(results, 'latin1')
  await writeFile(results, json.replace('SUCCESS', 'FAILURE'), 'latin1')
  await refused(there, 6, /is damaged: the results of the task are damaged/, /rsm server doctor/)
  await writeFile(results, json, 'latin1')
  const [journal = ''] = (await readdir(join(from, 'store')))
    .filter((name) => name.startsWith('journal'))
    .sort()
  const lines = await readFile(join(from, 'store', journal), 'latin1')
  await writeFile(join(from, 'store', journal), lines.replace('"hostname"', '"hostnane"'), 'latin1')
  await refused(there, 6, /the store is damaged/, /rsm server doctor/)
  await writeFile(join(from, 'store', journal), lines, 'latin1')

  const whole = await migrate(...there, '--quiet')
  t.deepEqual({ ...whole, signal: null }, { exit: 0, signal: null, stdout: '', stderr: '' })
  await refused(there, 6, /belongs to a server whose store is .*\n.*postgres\.json/)
  await rm(join(from, 'postgres.json'))
  await refused(there, 6, /is not empty: it has the store/)
})
