import test from 'ava'
import { hostNamed, pageOf, resultOf, startFakeServer, taskOf } from '../fixtures/fake-server.ts'
import { runLines } from '../helpers/clients/command-line.ts'

test('A16 hosts show prints an SSH line only if the record has SSH settings', async (t) => {
  const plain = hostNamed(1, 'web1')
  const noted = hostNamed(2, 'web2', { username: 'root', authType: 'PRIVATE_KEY' })
  const server = await startFakeServer(t, {
    'GET /api/hosts': ({ query }) => pageOf([query.get('selector') === 'web1' ? plain : noted]),
  })
  const lines = ['web1', 'web2'].map((host) => ({ argv: ['hosts', 'show', host] }))
  const [one, two] = await runLines(t, { url: server.url, token: 'x' }, lines)
  t.notRegex(one?.stdout ?? '', /ssh/)
  t.regex(two?.stdout ?? '', /^ssh +root@192\.0\.2\.1:22 \(key kept\)$/m)
})

test('A16 tasks show reports incomplete output also for successful hosts', async (t) => {
  const task = taskOf([
    resultOf('web1', { truncated: true }),
    resultOf('web2', { outputComplete: false }),
    resultOf('web3'),
  ])
  const script = { ...task, scriptVersion: null, content: 'seq 1e9', sha256: '', secretParams: [] }
  const server = await startFakeServer(t, {
    'GET /api/tasks/task-1': () => task,
    'GET /api/tasks/task-1/script': () => script,
  })
  const [ran] = await runLines(t, { url: server.url, token: 'x' }, [{ argv: ['tasks', 'show', 'task-1'] }])
  t.regex(ran?.stdout ?? '', /^web1 .* its output exceeded the limit; the middle is left out$/m)
  t.regex(ran?.stdout ?? '', /^web2 .* its output is incomplete$/m)
  t.regex(ran?.stdout ?? '', /^web3 +SUCCESS +0 +12 ms$/m)
})

test('A16 recordings list shows the command and its user', async (t) => {
  const session = {
    sessionId: '01M7ZEF5G74K5B44GT1WC0PYME',
    hostId: 1,
    hostname: 'web1',
    user: 'ann',
    status: 'CLOSED',
    cols: 80,
    rows: 24,
    runAs: 'deploy',
    shell: null,
    command: 'htop -d 5',
    startedAt: '2026-11-21T03:25:15.000Z',
    endedAt: '2026-11-21T03:25:16.000Z',
    exitCode: 0,
    signal: null,
    reason: null,
    recorded: true,
    recordingBytes: 10,
    watchers: [],
  }
  const server = await startFakeServer(t, { 'GET /api/terminals': () => pageOf([session]) })
  const [ran] = await runLines(t, { url: server.url, token: 'x' }, [{ argv: ['recordings', 'list'] }])
  t.regex(ran?.stdout ?? '', /EXIT +RUN-AS +COMMAND +SIZE\n01M7.* 0 +deploy +htop -d 5 +/)
})
