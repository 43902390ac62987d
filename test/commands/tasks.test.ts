import test, { type ExecutionContext } from 'ava'
import { entryOf, pageOf, resultOf, startFakeServer, taskOf, taskRoutes } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

type Routes = Parameters<typeof startFakeServer>[1]

async function run(t: ExecutionContext, argv: readonly string[], routes: Routes) {
  const server = await startFakeServer(t, routes)
  return runRsm(argv, cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' }))
}

const task = taskOf([resultOf('web1')])
const ranAs = (content: string, more: object = {}) => ({
  'GET /api/tasks/task-1': () => task,
  'GET /api/tasks/task-1/script': () => ({
    taskId: 'task-1',
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    type: 'BASH',
    content,
    sha256: '',
    secretParams: [],
    params: {},
    ...more,
  }),
})

test("tasks show prints the script's name, params and text, without control sequences", async (t) => {
  const script = { scriptName: 'deploy', scriptVersion: 3, params: { VERSION: '1.2', LEVEL: 'full' } }
  const ran = await run(t, ['tasks', 'show', 'task-1'], ranAs('echo one\n\u001b[31mecho two\n', script))
  t.is(ran.exit, 0, ran.stderr)
  t.regex(ran.stdout, /^script +deploy version 3 \(BASH\)$/m)
  t.regex(ran.stdout, /^params +VERSION=1\.2, LEVEL=full$/m)
  t.regex(ran.stdout, /\n\n {2}echo one\n {2}echo two\n\nHOST /)
})

test('tasks show and tasks retry request no script of a task without one', async (t) => {
  const install = { ...task, type: 'INSTALL', status: 'FAILED', firstLine: 'install the agent' } as const
  const routes = {
    'GET /api/tasks/task-1': () => install,
    'POST /api/tasks/task-1/retry': () => ({ taskId: 'task-2', status: 'RUNNING', hostCount: 1 }),
  }
  const shown = await run(t, ['tasks', 'show', 'task-1'], routes)
  t.is(shown.exit, 0, shown.stderr)
  t.regex(shown.stdout, /^type +INSTALL$/m)
  t.notRegex(shown.stdout, /^(script|params) /m)
  const retried = await run(t, ['tasks', 'retry', 'task-1', '--detach', '--yes'], routes)
  t.is(retried.exit, 0, retried.stderr)
  t.is(retried.stdout, 'task-2\n')
})

test('logs of a task that keeps writing stop at the end of the log at the time of the call', async (t) => {
  const running = { ...task, status: 'RUNNING' as const }
  const ran = await run(t, ['logs', 'task-1', '--json'], {
    'GET /api/tasks/task-1': () => running,
    'GET /api/tasks/task-1/logs': ({ query }) => {
      const after = Number(query.get('after') ?? 0)
      const entries = query.has('before') ? [] : [entryOf('web1', 'x\n', { id: after + 1 })]
      return { taskId: 'task-1', entries, next: query.has('before') ? 3 : after + 1, previous: 0 }
    },
  })
  t.is(ran.exit, 0, ran.stderr)
  const { entries, next } = JSON.parse(ran.stdout) as { entries: unknown[]; next: number }
  t.is(entries.length, 3)
  t.is(next, 3)
})

test('logs of a task without output says so, also without a terminal', async (t) => {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const { taskId } = await server.data('POST', '/api/tasks', {
    target: { hostIds: [id] },
    script: { content: 'true' },
    queueSeconds: 0,
    async: true,
  })
  const rsm = commandLine(t, server)
  for (const follow of [[], ['-f']]) {
    const ran = await rsm(['logs', taskId, ...follow])
    t.is(ran.stdout, '')
    t.true(
      ran.stderr.includes(`rsm: no output of task ${taskId} ('true'): rsm tasks show ${taskId}\n`),
      ran.stderr,
    )
  }
})

const caller = { 'GET /api/auth/me': () => ({ username: 'ann' }) }
const noOutput = { 'GET /api/tasks/task-1/logs': () => ({ taskId: 'task-1', entries: [], next: 0 }) }
for (const [line, logs] of [
  ['tasks show latest', {}],
  ['tasks wait latest', {}],
  ['logs latest', noOutput],
] as const)
  test(`${line} --json prints the newest task of the caller`, async (t) => {
    const asked: Record<string, string>[] = []
    const ran = await run(t, [...line.split(' '), '--json'], {
      'GET /api/tasks': ({ query }) => {
        asked.push(Object.fromEntries(query))
        return pageOf([task])
      },
      ...caller,
      ...taskRoutes(task, []),
      ...logs,
    })
    t.is((JSON.parse(ran.stdout) as { taskId: string }).taskId, 'task-1', ran.stderr)
    t.deepEqual(asked, [{ createdBy: 'ann', size: '1' }])
  })

test('latest is not found for a user who has started no task', async (t) => {
  const ran = await run(t, ['tasks', 'show', 'latest'], {
    ...caller,
    'GET /api/tasks': () => pageOf([]),
  })
  t.is(ran.exit, 5)
  t.regex(ran.stderr, /^rsm: ann has not started a task yet\n/)
})

test('cancel and retry of latest require --yes without a terminal, and name the task', async (t) => {
  const latest = taskOf([resultOf('web1')], { status: 'RUNNING', firstLine: 'sleep \u001b[31m600' })
  const server = await startFakeServer(t, {
    ...caller,
    'GET /api/tasks': () => pageOf([latest]),
    'POST /api/tasks/task-1/cancel': () => ({ ...latest, status: 'CANCELLED' }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  for (const verb of ['cancel', 'retry']) {
    const unsure = await runRsm(['tasks', verb, 'latest'], env)
    t.is(unsure.exit, 2, unsure.stderr)
    t.regex(unsure.stderr, new RegExp(`^rsm: without a terminal, ${verb} of latest needs --yes\n`))
  }
  t.deepEqual(server.seen, [])
  const sure = await runRsm(['tasks', 'cancel', 'latest', '-y', '--utc'], env)
  t.is(sure.stdout, 'cancelled task-1\n', sure.stderr)
  t.is(sure.stderr, "rsm: latest is task-1: 'sleep 600' on 1 host, started 2026-11-21 03:25:15Z\n")
})

test('tasks show prints the first 20 lines of a long text, and how many follow', async (t) => {
  const text = Array.from({ length: 23 }, (_, at) => `echo ${at + 1}`).join('\n')
  const ran = await run(t, ['tasks', 'show', 'task-1'], ranAs(text))
  t.regex(ran.stdout, /^script +ad hoc \(BASH\)$/m)
  t.regex(ran.stdout, / {2}echo 20\n {2}… 3 more lines\n\nHOST /)
})

test('the ellipsis of a text cut by the server is ASCII if the locale is not UTF-8', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/tasks': () => pageOf([{ ...task, firstLine: 'df -h …' }]),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x', LC_ALL: 'C' })
  t.regex((await runRsm(['tasks', 'list'], env)).stdout, /\n.* df -h \.\.\. +admin /)
})

test('tasks show --json prints only the task', async (t) => {
  const ran = await run(t, ['tasks', 'show', 'task-1', '--json'], ranAs('x'))
  t.deepEqual(JSON.parse(ran.stdout), task)
})

test('tasks list shows the first line of a script that is not stored', async (t) => {
  const ran = await run(t, ['tasks', 'list'], {
    'GET /api/tasks': () => pageOf([{ ...task, firstLine: 'df -h' }, task]),
  })
  t.regex(ran.stdout, /\n.* df -h +admin .*\n.* \(ad hoc\) /)
})

for (const [status, said] of [
  ['RUNNING', 'task-1 is being cancelled\n'],
  ['CANCELLED', 'cancelled task-1\n'],
  ['FAILED', 'task-1 has ended: FAILED\n'],
] as const)
  test(`tasks cancel with the answer ${status} prints: ${said.trim()}`, async (t) => {
    const routes = { 'POST /api/tasks/task-1/cancel': () => ({ ...task, status }) }
    const ran = await run(t, ['tasks', 'cancel', 'task-1'], routes)
    t.is(ran.stdout, said, ran.stderr)
  })
