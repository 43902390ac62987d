import { chmod, chown, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { judgeClock, judgeNode } from '../../src/server/storage/files/checks/doctor.ts'
import { judgeRoom } from '../../src/server/storage/files/checks/place.ts'
import { encodeLine } from '../../src/server/storage/files/store/line.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { upload } from '../helpers/clients/files.ts'
import { finished, startTask } from '../helpers/clients/tasks.ts'
import { startTestServer } from '../helpers/servers/server.ts'

interface Told {
  running: boolean
  findings: { code: string; severity: string; message: string; advice: string }[]
  well: string[]
}

/** A stopped server with `count` tasks, sessions, files and previous script versions, and its doctor. */
async function patient(t: ExecutionContext, count = 1) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { terminal: true } })
  agent.serve(() => ({ output: 'hello\n' }))
  agent.serveTerminals()
  const { id } = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'true' })
  const [taskIds, sessionIds, fileIds]: [string[], string[], string[]] = [[], [], []]
  for (let n = 1; n <= count; n++) {
    const taskId = await startTask(server, [identity.hostId])
    await finished(server, taskId)
    taskIds.push(taskId)
    const { sessionId } = await server.data('POST', '/api/terminals', {
      hostId: identity.hostId,
      cols: 80,
      rows: 24,
    })
    await server.data('DELETE', `/api/terminals/${sessionId}`)
    sessionIds.push(sessionId)
    fileIds.push((await upload(server, `file ${n}`)).fileId)
    await server.data('PATCH', `/api/scripts/${id}`, { content: `exit ${n}` })
  }
  const [taskId = '', sessionId = ''] = [taskIds[0], sessionIds[0]]
  await agent.cut()
  await server.stop()
  const env = cleanEnv(temporaryDirectory(t))
  const at = (...names: string[]) => join(server.dataDir, ...names)
  async function doctor(port = 0): Promise<Told & { exit: number | null; codes: string[] }> {
    const ran = await runRsm(
      ['server', 'doctor', '--port', String(port), '--json', '--data-dir', server.dataDir],
      env,
    )
    if (ran.stdout === '') throw new Error(ran.stderr)
    const told = JSON.parse(ran.stdout) as Told
    return { ...told, exit: ran.exit, codes: told.findings.map(({ code }) => code) }
  }
  const ids = { taskId, taskIds, sessionId, sessionIds, fileIds, scriptId: Number(id) }
  return { server, at, doctor, env, ...ids }
}

type Patient = Awaited<ReturnType<typeof patient>>

async function alter(path: string, change: (text: string) => string): Promise<void> {
  await writeFile(path, change(await readFile(path, 'latin1')), 'latin1')
}
const journal = ({ at }: Patient) => at('store', 'journal-000000000001.jsonl')
const snapshot = ({ at }: Patient) => at('store', 'snapshot-000000000000.jsonl')
const middle = (text: string) => {
  const half = text.length >> 1
  return `${text.slice(0, half)}${text[half] === 'x' ? 'y' : 'x'}${text.slice(half + 1)}`
}

/** Each damage, the code of its finding, and the place that the message names. */
const damage: Record<
  string,
  [hurt: (sick: Patient) => Promise<unknown>, code: string, says: RegExp, severity?: 'warning']
> = {
  'an empty store manifest': [
    ({ at }) => writeFile(at('store', 'store.json'), ''),
    'store',
    /store\.json, byte 0: the file is empty/,
  ],
  'a missing store': [({ at }) => rename(at('store'), at('gone')), 'store', /the store is missing/],
  'a modified snapshot': [
    (sick) => alter(snapshot(sick), middle),
    'store',
    /snapshot-0+\.jsonl, byte \d+: the line does not match/,
  ],
  'a modified journal': [
    (sick) => alter(journal(sick), middle),
    'store',
    /journal-0+1\.jsonl, byte \d+: a line does not match/,
  ],
  'a missing journal': [
    (sick) => rm(journal(sick)),
    'store',
    /journal-0+1\.jsonl, byte 0: the file is missing/,
  ],
  'a journal cut off in its last line': [
    (sick) => alter(journal(sick), (text) => text.slice(0, -7)),
    'journal-tail',
    /ends in \d+ bytes of a write that was cut off/,
    'warning',
  ],
  'a store of a newer format': [
    ({ at }) => alter(at('store', 'store.json'), (text) => text.replace(/"format":\d+/, '"format":99')),
    'newer',
    /was written by a newer rsm \(format 99/,
  ],
  'a kind of records that only a newer rsm knows': [
    (sick) =>
      alter(journal(sick), (text) => text + encodeLine(JSON.stringify({ seq: 1e6, put: { moons: [] } }))),
    'newer',
    /was written by a newer rsm \(it has records of an unknown kind: moons/,
  ],
  'a missing key': [({ at }) => rm(at('keys', 'signing.key')), 'keys', /keys\/signing\.key is missing/],
  'a key of another server': [
    ({ at }) => writeFile(at('keys', 'seal.key'), Buffer.alloc(32, 7)),
    'keys',
    /seal\.key is damaged, or is the key of another/,
  ],
  'a key that others may read': [
    ({ at }) => chmod(at('keys', 'signing.key'), 0o644),
    'permissions',
    /other users may read .*signing\.key \(mode 644\)/,
  ],
  'a directory that is open to others': [
    ({ at }) => chmod(at(), 0o755),
    'permissions',
    /is open to other users \(mode 755\)/,
  ],
  'modified output': [
    ({ at, taskId }) => alter(at('tasks', taskId, 'output.log'), (text) => text.replace('hello', 'hallo')),
    'output',
    /output\.log, byte 0/,
  ],
  'missing output': [
    ({ at, taskId }) => rm(at('tasks', taskId, 'output.log')),
    'output',
    /output of a task is missing: .*output\.log$/,
    'warning',
  ],
  'a missing recording': [
    ({ at, sessionId }) => rm(at('terminals', `${sessionId}.cast`)),
    'recording',
    /a recording is missing: .*\.cast$/,
    'warning',
  ],
  'modified results': [
    ({ at, taskId }) => alter(at('tasks', taskId, 'task.json'), (text) => text.replace('SUCCESS', 'FAILURE')),
    'results',
    /task\.json/,
  ],
  'a modified recording': [
    ({ at, sessionId }) => alter(at('terminals', `${sessionId}.cast`), (text) => text.replace('80', '81')),
    'recording',
    /\.cast, bytes 0 to/,
  ],
  'an empty previous version of a script': [
    ({ at, scriptId }) => writeFile(at('scripts', String(scriptId), '1.json'), ''),
    'script-version',
    /1\.json/,
  ],
  'a modified entry of the audit log': [
    ({ at }) => alter(at('audit', 'audit.log'), (text) => text.replace('user.create', 'user.delete')),
    'audit-log',
    /line \d+ does not match its hash/,
  ],
  'an audit log that lost its end': [
    ({ at }) => alter(at('audit', 'audit.log'), (text) => `${text.split('\n')[0]}\n`),
    'audit-log',
    /its end was cut off/,
  ],
  'a modified clock file': [
    ({ at }) => alter(at('clock.json'), middle),
    'clock-file',
    /clock\.json is damaged/,
    'warning',
  ],
}

test('rsm server doctor finds nothing wrong with a sound directory, with and without a running server', async (t) => {
  const { server, at, scriptId, doctor, env } = await patient(t)
  const stopped = await doctor()
  t.deepEqual(stopped.findings, [])
  t.is(stopped.exit, 0)
  t.false(stopped.running)
  t.true(stopped.well.some((each) => /output of 1 tasks and 1 recordings are whole/.test(each)))
  await server.restart()
  const running = await doctor()
  t.deepEqual(running.findings, [])
  t.true(running.running)
  const shown = await runRsm(['server', 'doctor', '--data-dir', server.dataDir], env)
  t.is(shown.exit, 0)
  t.regex(shown.stdout, /^ok {7}it runs \(pid \d+/)
  const link = join(temporaryDirectory(t), 'link')
  await symlink(server.dataDir, link)
  await writeFile(at('scripts', String(scriptId), '1.json.812-4f.tmp'), '{"id')
  const linked = await runRsm(['server', 'doctor', '--data-dir', link], env)
  t.is(linked.exit, 0, linked.stdout)
})

test('rsm server doctor names a file of another user, however deep', async (t) => {
  if (process.getuid?.() !== 0) {
    t.pass('skipped: only root gives files away')
    return
  }
  const { at, doctor, taskId } = await patient(t)
  await chown(at('tasks', taskId, 'output.log'), 1, 1)
  const told = await doctor()
  t.is(told.exit, 1)
  t.regex(told.findings[0]?.message ?? '', /output\.log belongs to user 1, the data directory to 0/)
})

for (const [name, [hurt, code, says, severity = 'error']] of Object.entries(damage))
  test(`rsm server doctor names ${name}`, async (t) => {
    const sick = await patient(t)
    await hurt(sick)
    const before = await readdir(sick.at(), { recursive: true })
    const told = await sick.doctor()
    const found = told.findings.find((each) => each.code === code)
    t.truthy(found, JSON.stringify(told))
    t.regex(found?.message ?? '', says)
    t.is(found?.severity, severity)
    t.not(found?.advice, '')
    t.is(told.exit, severity === 'error' ? 1 : 0)
    t.deepEqual((await readdir(sick.at(), { recursive: true })).sort(), before.sort())
  })

test('rsm server doctor names each file that it cannot read, and continues with the next one', async (t) => {
  const { at, doctor, taskIds, sessionIds, fileIds, scriptId } = await patient(t, 2)
  const [[task = '', otherTask = ''], [session, otherSession], [file = '', otherFile = '']] = [
    taskIds,
    sessionIds,
    fileIds,
  ]
  const script = String(scriptId)
  const unreadable = [
    ['output', at('tasks', task, 'output.log')],
    ['results', at('tasks', task, 'task.json')],
    ['recording', at('terminals', `${session}.cast`)],
    ['script-version', at('scripts', script, '1.json')],
    ['file', at('files', file)],
  ] as const
  // Not even root can read a directory as a file.
  for (const [, path] of unreadable) {
    await rm(path)
    await mkdir(path, { mode: 0o700 })
  }
  const missing = [
    ['output', at('tasks', otherTask, 'output.log')],
    ['recording', at('terminals', `${otherSession}.cast`)],
    ['file', at('files', otherFile)],
  ] as const
  for (const [, path] of missing) await rm(path)
  await writeFile(at('scripts', script, '2.json'), '')
  const told = await doctor()
  const kinds = new Set<string>(unreadable.map(([code]) => code))
  const found = told.findings
    .filter(({ code }) => kinds.has(code))
    .map(({ code, severity, message }) => `${severity} ${code}: ${message}`)
  const expected = [
    ...unreadable.map(([code, path]) => [`error ${code}: `, `${path} cannot be read: EISDIR`]),
    ...missing.map(([code, path]) => [`warning ${code}: `, ` is missing: ${path}`]),
    ['error script-version: ', `${at('scripts', script, '2.json')} is not JSON`],
  ] as const
  for (const [start = '', part = ''] of expected)
    t.is(found.filter((each) => each.startsWith(start) && each.includes(part)).length, 1, part)
  t.is(found.length, expected.length, found.join('\n'))
})

test('rsm server doctor names the process that uses the port, and a data directory that does not exist', async (t) => {
  const { doctor, env } = await patient(t)
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const told = await doctor(port)
  t.is(told.exit, 1)
  t.regex(
    told.findings[0]?.message ?? '',
    new RegExp(`^port ${port} of 127.0.0.1 is in use by .*\\(pid ${process.pid}\\)$`),
  )
  const nowhere = await runRsm(['server', 'doctor', '--port', '0', '--data-dir', '/nowhere/at/all'], env)
  t.is(nowhere.exit, 1)
  t.regex(nowhere.stdout, /error +the data directory \/nowhere\/at\/all does not exist/)
})

test('a nearly full disk, a clock behind the data and an old Node version are findings', (t) => {
  const room = { bavail: 1e6, blocks: 2e6, bsize: 4096, ffree: 900, files: 1000 }
  const codes = (look: ReturnType<typeof judgeRoom>) =>
    Array.isArray(look) ? look.map(({ code, severity }) => `${severity} ${code}`) : look
  t.deepEqual(codes(judgeRoom('/x', room)), 'its disk has 3906 MB left')
  t.deepEqual(codes(judgeRoom('/x', { ...room, bavail: 10 })), ['error disk'])
  t.deepEqual(codes(judgeRoom('/x', { ...room, blocks: 1e8 })), ['warning disk'])
  t.deepEqual(codes(judgeRoom('/x', { ...room, ffree: 1 })), ['warning disk'])
  const now = Date.parse('2026-11-21T03:25:00Z')
  t.is(typeof judgeClock(now - 1000, now), 'string')
  t.deepEqual(codes(judgeClock(now + 7_200_000, now)), ['error clock'])
  t.deepEqual(codes(judgeNode('20.11.1', [20, 18])), ['error software'])
  t.is(judgeNode('24.0.0', [20, 18]), 'Node is 24.0.0')
})
