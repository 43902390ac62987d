import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Task } from '../../src/core/protocol/http/tasks.ts'
import {
  entryOf,
  envelope,
  eventStream,
  type FakeServer,
  hostNamed,
  pageOf,
  resultOf,
  startFakeServer,
  taskOf,
  taskRoutes,
} from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'

function envFor(t: ExecutionContext, server: FakeServer): Record<string, string> {
  return cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'secret' })
}

const posted = (server: FakeServer) =>
  server.seen.find(({ method, path }) => method === 'POST' && path === '/api/tasks')

test("exec prints each host's lines, a summary on stderr, and exits with 0", async (t) => {
  const task = taskOf([resultOf('web1'), resultOf('web2')])
  const entries = [
    entryOf('web1', 'one\n'),
    entryOf('web2', 'two\n'),
    entryOf('web2', 'careful\n', { stream: 'stderr' }),
  ]
  const server = await startFakeServer(t, taskRoutes(task, entries))
  const ran = await runRsm(['exec', '-w', 'web[1-2]', 'echo', 'a  b', '--json'], envFor(t, server))
  t.is(ran.exit, 0, ran.stderr)
  t.is(ran.stdout, 'web1: one\nweb2: two\n')
  t.is(ran.stderr, 'web2: careful\nrsm: 2 hosts: 2 SUCCESS in 1.2 s (task task-1)\n')
  t.deepEqual(posted(server)?.body, {
    script: { content: 'echo a  b --json', type: 'BASH' },
    target: { hosts: ['web[1-2]'] },
    async: true,
  })
  t.regex(String(posted(server)?.headers['idempotency-key']), /^[0-9a-f-]{36}$/)
})

test("a word of the command that equals an option's value keeps its place", async (t) => {
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), []))
  await runRsm(['exec', '-w', 'web1', '--', 'echo', 'x', 'web1'], envFor(t, server))
  t.like(posted(server)?.body, { script: { content: 'echo x web1' } })
})

test('every option of a run reaches the server', async (t) => {
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), []))
  const env = { ...envFor(t, server), PASSWORD: 'hush' }
  const options =
    '-w web1 -t role=web -x web9 -p A=1 --secret-param PASSWORD --batch-size 1,50% -f 2 --max-failures 10% --pause 5s -u 2m --queue 1m -l deploy --workdir /srv --limit memory=1G --limit processes=100 --limit cpu=150% --idempotency-key k1 --type python'
  const ran = await runRsm(['exec', ...options.split(' '), 'print(1)'], env)
  t.is(ran.exit, 0, ran.stderr)
  t.deepEqual(posted(server)?.body, {
    script: { content: 'print(1)', type: 'PYTHON' },
    target: { hosts: ['web1'], tags: ['role=web'], exclude: ['web9'] },
    params: { A: '1' },
    secretParams: { PASSWORD: 'hush' },
    strategy: 'ROLLING',
    batchSize: [1, '50%'],
    concurrency: 2,
    maxFailures: '10%',
    pauseSeconds: 5,
    timeout: 120,
    queueSeconds: 60,
    runAs: 'deploy',
    workDir: '/srv',
    limits: { memoryMB: 1024, processes: 100, cpuPercent: 150 },
    async: true,
  })
  t.is(posted(server)?.headers['idempotency-key'], 'k1')
})

test('a script comes from a file, from stdin, or from the store', async (t) => {
  const task = taskOf([resultOf('web1')])
  const script = { id: 9, name: 'deploy', content: 'true' }
  const routes = { ...taskRoutes(task, []), 'GET /api/scripts': () => pageOf([script]) }
  const bodies: unknown[] = []
  const file = join(temporaryDirectory(t), 'check.py')
  writeFileSync(file, 'print(1)\n')
  for (const [argv, input] of [
    [['--script', file], ''],
    [['-'], 'echo from stdin\n'],
    [['--script', 'deploy'], ''],
  ] as const) {
    const server = await startFakeServer(t, routes)
    await runRsm(['exec', '-w', 'web1', ...argv], envFor(t, server), input)
    bodies.push(posted(server)?.body)
  }
  t.like(bodies[0], { script: { content: 'print(1)\n', type: 'PYTHON', name: 'check.py' } })
  t.like(bodies[1], { script: { content: 'echo from stdin\n', type: 'BASH' } })
  t.like(bodies[2], { scriptId: 9 })
})

const exits: [string, Partial<Task['results'][number]>, number][] = [
  ['its own code', { status: 'FAILED', exitCode: 7 }, 7],
  ['124 after a timeout', { status: 'TIMEOUT', exitCode: -1 }, 124],
  ['255 when lost', { status: 'LOST', exitCode: null }, 255],
]
for (const [title, result, exit] of exits)
  test(`exec on one host that failed exits with ${title}`, async (t) => {
    const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1', result)]), []))
    const ran = await runRsm(['exec', '-q', '-w', 'web1', 'x'], envFor(t, server))
    t.is(ran.exit, exit)
    t.regex(ran.stderr, new RegExp(`^rsm: web1: ${result.status}`))
  })

test('an unreachable host is named with its reason and the doctor command', async (t) => {
  const away = resultOf('web1', { status: 'UNREACHABLE', exitCode: null, error: 'no agent came in 0 s' })
  const server = await startFakeServer(t, {
    ...taskRoutes(taskOf([away]), []),
    'GET /api/hosts/1': () => hostNamed(1, 'web1', { status: 'OFFLINE', statusReason: 'never heard' }),
  })
  const ran = await runRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
  t.is(ran.exit, 255)
  t.regex(ran.stderr, /web1 is OFFLINE: never heard\n +rsm hosts doctor web1/)
})

test('text from an agent is one line without terminal or workflow commands; -q omits advice', async (t) => {
  const away = resultOf('web1', { status: 'UNREACHABLE', exitCode: null, error: 'no agent came in 0 s' })
  const statusReason = 'disk /a\u001b]52;c;eA==\u0007\n::add-mask::web1\r##[error]x 93 %'
  const server = await startFakeServer(t, {
    ...taskRoutes(taskOf([away]), []),
    'GET /api/hosts/1': () => hostNamed(1, 'web1', { status: 'WARNING', statusReason }),
  })
  const ran = await runRsm(['exec', '-q', '-o', 'github', '-w', 'web1', 'x'], envFor(t, server))
  t.is(
    ran.stderr,
    'rsm: web1: UNREACHABLE: no agent came in 0 s\nrsm: web1 is WARNING: disk /a ::add-mask::web1 ## [error]x 93 %\n',
  )
})

test('an error is reported even if the request for its explanation fails', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/tasks': (_seen, response) =>
      envelope(response, 400, { errors: [{ field: 'target.hosts[0]', message: 'no such host: web9' }] }),
    'GET /api/hosts': (_seen, response) => envelope(response, 503, {}),
  })
  const ran = await runRsm(['exec', '-w', 'web9', 'x'], envFor(t, server))
  t.is(ran.exit, 5)
  t.is(ran.stderr, 'rsm: no such host: web9\n')
})

test('an OFFLINE host whose result says so is reported once, with the doctor command', async (t) => {
  const error = 'web1 is OFFLINE: never heard'
  const away = resultOf('web1', { status: 'UNREACHABLE', exitCode: null, error })
  const server = await startFakeServer(t, taskRoutes(taskOf([away]), []))
  const ran = await runRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
  t.regex(
    ran.stderr,
    /^rsm: web1: UNREACHABLE: web1 is OFFLINE: never heard\n {5}rsm hosts doctor web1\nrsm: 1 host/,
  )
})

test('unreachable hosts share one doctor command, below them and not below a failed host', async (t) => {
  const away = (at: number, reason: string) =>
    resultOf(`node${at}`, { status: 'UNREACHABLE', exitCode: null, error: `node${at} is OFFLINE: ${reason}` })
  const results = [
    ...[1, 2, 3, 4].map((at) => away(at, 'never heard')),
    away(5, 'no heartbeat for 94 s'),
    resultOf('web3', { status: 'FAILED', exitCode: 3 }),
  ]
  const server = await startFakeServer(t, taskRoutes(taskOf(results), []))
  const ran = await runRsm(['exec', '-a', 'x'], envFor(t, server))
  t.is(ran.exit, 1)
  const lines = [
    'rsm: node[1-4]: UNREACHABLE: OFFLINE: never heard',
    'rsm: node5: UNREACHABLE: node5 is OFFLINE: no heartbeat for 94 s',
    "     rsm hosts doctor 'node[1-5]'",
    'rsm: web3: FAILED, exit 3',
  ]
  t.is(ran.stderr.split('\n').slice(0, 4).join('\n'), lines.join('\n'))
})

test('--json prints the final task and no output of hosts', async (t) => {
  const task = taskOf([resultOf('web1')])
  const server = await startFakeServer(t, taskRoutes(task, [entryOf('web1', 'x\n')]))
  const ran = await runRsm(['exec', '--json', '-w', 'web1', 'x'], envFor(t, server))
  t.deepEqual(JSON.parse(ran.stdout), task)
  t.is(ran.stderr, '')
})

test('an `end` without results is filled from the task', async (t) => {
  const task = taskOf([resultOf('web1', { status: 'FAILED', exitCode: 9 })])
  const server = await startFakeServer(t, {
    ...taskRoutes(task, []),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const { results: _, ...summary } = task
      const write = eventStream(response)
      write('end', summary)
      response.end()
    },
  })
  t.is((await runRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))).exit, 9)
})

test('--detach prints the taskId and does not wait', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/tasks': () => ({ taskId: 'task-1', status: 'RUNNING', hostCount: 1 }),
  })
  const ran = await runRsm(['exec', '--detach', '-w', 'web1', 'x'], envFor(t, server))
  t.is(ran.exit, 0)
  t.is(ran.stdout, 'task-1\n')
})

test('--plan shows hosts, batches and the exact text, and runs nothing', async (t) => {
  const hosts = ['web1', 'web2', 'web3', 'web10'].map((name, at) => hostNamed(at + 1, name))
  const server = await startFakeServer(t, { 'POST /api/hosts/select': () => pageOf(hosts) })
  const argv = ['exec', '--dry-run', '-w', 'web*', '--batch-size', '1,2', 'systemctl restart nginx']
  const ran = await runRsm(argv, envFor(t, server))
  t.is(ran.exit, 0, ran.stderr)
  t.is(
    ran.stdout,
    [
      'batch 1 (1): web1',
      'batch 2 (2): web[2-3]',
      'batch 3 (1): web10',
      'strategy: rolling, stops after a batch with a failure',
      'timeout: 300 s on each host',
      'script: ad hoc (BASH)',
      '',
      'systemctl restart nginx\n',
    ].join('\n'),
  )
  t.is(posted(server), undefined)
})

/** A task that runs until cancelled; `stands` is the status that requests for the task get. */
function endless(t: ExecutionContext, stands: 'RUNNING' | 'CANCELLED' = 'CANCELLED') {
  const cancelled = taskOf([resultOf('web1', { status: 'CANCELLED', exitCode: null })], {
    status: 'CANCELLED',
  })
  let end = () => {}
  return startFakeServer(t, {
    ...taskRoutes(cancelled, []),
    'GET /api/tasks/task-1': () => ({ ...cancelled, status: stands }),
    'GET /api/tasks/task-1/logs': (_seen, response) => {
      const write = eventStream(response)
      write('output', entryOf('web1', 'working\n', { id: 1 }), 1)
      end = () => {
        write('end', cancelled)
        response.end()
      }
    },
    'POST /api/tasks/task-1/cancel': () => {
      end()
      return cancelled
    },
  })
}

const cancels = (server: FakeServer) => server.seen.filter((each) => each.path.endsWith('/cancel')).length

for (const [signal, exit] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  test(`without a terminal ${signal} cancels the task, and exec exits with ${exit}`, async (t) => {
    const server = await endless(t)
    const { child, done, shows } = startRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
    await shows('web1: working')
    child.kill(signal)
    t.is((await done).exit, exit)
    t.is(cancels(server), 1)
  })

test('an interrupted logs -f says that the task still runs, and how to continue after the shown output', async (t) => {
  const server = await endless(t, 'RUNNING')
  const { child, done, shows } = startRsm(['logs', '-f', 'task-1'], envFor(t, server))
  await shows('web1: working')
  child.kill('SIGINT')
  const { exit, stderr } = await done
  t.is(exit, 130)
  t.regex(stderr, /^rsm: task task-1 is still running: rsm logs -f task-1 --after \d+$/m)
  t.is(cancels(server), 0)
})

test('SIGHUP cancels nothing, and leaves no incomplete file', async (t) => {
  const server = await endless(t)
  const directory = temporaryDirectory(t)
  const files = ['junit', 'grouped'].flatMap((format) => ['-o', `${format}=${directory}/${format}`])
  const argv = ['exec', ...files, '-w', 'web1', 'x']
  const { child, done, shows } = startRsm(argv, envFor(t, server))
  await shows('web1: working')
  t.is(readdirSync(directory).length, 2)
  child.kill('SIGHUP')
  t.is((await done).signal, 'SIGHUP')
  t.deepEqual(readdirSync(directory), [])
  t.is(cancels(server), 0)
})

test('a closed stdout cancels nothing, and exec exits silently with 141', async (t) => {
  const entries = Array.from({ length: 5000 }, () => entryOf('web1', `${'x'.repeat(200)}\n`))
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), entries))
  const { child, done, shows } = startRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
  await shows('xxx')
  child.stdout.destroy()
  const ran = await done
  t.is(ran.exit, 141)
  t.is(ran.stderr, '')
  t.is(cancels(server), 0)
})

test('a closed stderr ends nothing', async (t) => {
  const entries = Array.from({ length: 5000 }, () =>
    entryOf('web1', `${'x'.repeat(200)}\n`, { stream: 'stderr' }),
  )
  const end = entryOf('web1', 'over\n')
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), [...entries, end]))
  const { child, done, shows } = startRsm(['exec', '-w', 'web1', 'x'], envFor(t, server))
  await shows('xxx')
  child.stderr.destroy()
  const ran = await done
  t.is(ran.exit, 0)
  t.is(ran.stdout, 'web1: over\n')
})

test('-w - reads host names from stdin', async (t) => {
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), []))
  await runRsm(['exec', '-w', '-', 'x'], envFor(t, server), 'web1 # the first\n\n# none\nweb2 db1\n')
  t.like(posted(server)?.body, { target: { hosts: ['web1', 'web2', 'db1'] } })
})

test('logs reads the whole log in pages; -f follows to the end and exits with 0', async (t) => {
  const task = taskOf([resultOf('web1', { status: 'FAILED', exitCode: 3 })])
  const entries = [entryOf('web1', 'a\n', { id: 1 }), entryOf('web1', 'b\n', { id: 2 })]
  const routes = taskRoutes(task, entries)
  const follow = routes['GET /api/tasks/task-1/logs']
  const server = await startFakeServer(t, {
    ...routes,
    'GET /api/tasks/task-1/logs': (seen, response) => {
      if (seen.query.get('follow') === 'true') return follow?.(seen, response)
      const after = Number(seen.query.get('after') ?? 0)
      const page = entries.filter((entry) => entry.id > after).slice(0, 1)
      return { taskId: 'task-1', entries: page, next: page.at(-1)?.id ?? after, previous: 0 }
    },
  })
  for (const argv of [
    ['logs', 'task-1'],
    ['logs', '-f', 'task-1'],
    ['logs', 'task-1', '--host', 'WEB1'],
  ]) {
    const ran = await runRsm(argv, envFor(t, server))
    t.is(ran.exit, 0, ran.stderr)
    t.is(ran.stdout, 'web1: a\nweb1: b\n')
  }
  t.is((await runRsm(['logs', 'task-1', '--host', 'wbe1'], envFor(t, server))).exit, 5)
})

test('A16 exec warns about several quoted words after bash -c, which bash would split, but not about one word', async (t) => {
  const server = await startFakeServer(t, taskRoutes(taskOf([resultOf('web1')]), []))
  const said = async (...words: string[]) => {
    const ran = await runRsm(['exec', '-w', 'web1', '--', ...words], envFor(t, server))
    return ran.stderr.replace(/^rsm: 1 host: .*\n/gm, '')
  }
  t.is(
    await said('bash', '-c', 'echo a b'),
    'rsm: the words are joined by spaces, so bash -c gets only the first word of what you quoted: leave bash -c out\n',
  )
  t.regex(await said('/bin/sh', '-ec', 'a; b'), /leave \/bin\/sh -ec out\n$/)
  t.is(await said('bash', '-c', 'uptime'), '')
  t.is(await said('echo', '-c', 'a b'), '')
})

test('A16 output over its limit is reported at the end, but not with -q', async (t) => {
  const task = taskOf([resultOf('web1', { truncated: true }), resultOf('web2')])
  const server = await startFakeServer(t, taskRoutes(task, []))
  const env = envFor(t, server)
  const line = 'rsm: web1: its output exceeded the limit; the middle is left out\n'
  const ran = await runRsm(['exec', '-w', 'web[1-2]', 'x'], env)
  t.is(ran.stderr, `${line}rsm: 2 hosts: 2 SUCCESS in 1.2 s (task task-1)\n`)
  t.is((await runRsm(['exec', '-q', '-w', 'web[1-2]', 'x'], env)).stderr, '')
})
