import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type Client, openClient } from '../../../src/client/client.ts'
import { Api } from '../../../src/client/http/api.ts'
import { allPages } from '../../../src/client/http/pages.ts'
import { openTransport } from '../../../src/client/http/transport.ts'
import { writeWholeFile } from '../../../src/client/whole-file.ts'
import { type ErrorCode, exitCode, RsmError } from '../../../src/core/errors.ts'
import { openConnection } from '../../../src/net/connect.ts'
import { envelope, hostNamed, startFakeServer } from '../../fixtures/fake-server.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const failures: [string, number, object, ErrorCode, number][] = [
  ['a fault of the body', 400, { errors: [{ field: 'ip', message: 'must not be blank' }] }, 'invalid', 2],
  [
    'an unknown name',
    400,
    { errors: [{ field: 'target.selector', message: 'no such host: web9' }] },
    'not_found',
    5,
  ],
  [
    'an unknown name with another fault',
    400,
    {
      errors: [
        { field: 'a', message: 'no such host: x' },
        { field: 'b', message: 'must not be blank' },
      ],
    },
    'invalid',
    2,
  ],
  ['no valid token', 401, {}, 'unauthenticated', 3],
  ['not allowed', 403, {}, 'forbidden', 3],
  ['an unknown id', 404, {}, 'not_found', 5],
  ['a conflict', 409, {}, 'conflict', 6],
  ['a defect', 500, {}, 'internal', 6],
  ['a server that shuts down', 503, {}, 'unavailable', 6],
]
for (const [title, status, rest, code, exit] of failures)
  test(`${title} (${status}) is ${code}, exit ${exit}`, async (t) => {
    const server = await startFakeServer(t, {
      'GET /api/hosts/1': (_seen, response) => envelope(response, status, rest),
    })
    const client = await openClient({ url: server.url, token: 'x' })
    const error = await t.throwsAsync(client.hosts.get(1), { instanceOf: RsmError })
    t.is(error.code, code)
    t.is(exitCode(error), exit)
  })

/** A server that refuses the first `refusals` calls, and a client whose clock advances only by its pauses. */
async function fallingOver(t: ExecutionContext, refusals: number, retryAfter: string) {
  let calls = 0
  const answer = (_seen: unknown, response: ServerResponse) => {
    if (++calls > refusals) return envelope(response, 200, { data: hostNamed(1, 'web1') })
    response.setHeader('retry-after', retryAfter)
    return envelope(response, 503, {})
  }
  const server = await startFakeServer(t, { 'GET /api/hosts/1': answer, 'POST /api/tasks': answer })
  const pauses: number[] = []
  const told: RsmError[] = []
  const waiting = {
    now: () => pauses.reduce((sum, one) => sum + one, 0),
    pause: async (milliseconds: number) => void pauses.push(milliseconds),
    refused: (error: RsmError) => void told.push(error),
  }
  const send = openTransport(openConnection({ url: server.url }))
  const api = new Api(server.url, send, 'x', undefined, waiting)
  return { api, pauses, told, calls: () => calls }
}

for (const [method, path, repeatable] of [
  ['GET', '/api/hosts/1', false],
  ['POST', '/api/tasks', true],
] as const)
  test(`a first ${method} refused with Retry-After is repeated at that interval, with one notice`, async (t) => {
    const { api, pauses, told } = await fallingOver(t, 2, '2')
    t.like(await api.call(method, path, { repeatable }), { hostname: 'web1' })
    t.deepEqual(pauses, [2_000, 2_000])
    t.deepEqual(
      told.map(({ code }) => code),
      ['unavailable'],
    )
  })

test('a refused call fails after 15 s, or at once if Retry-After is longer or it may have been executed', async (t) => {
  const away = await fallingOver(t, Number.POSITIVE_INFINITY, '4')
  const error = await t.throwsAsync(away.api.call('GET', '/api/hosts/1'), { instanceOf: RsmError })
  t.is(exitCode(error), 6)
  t.is(away.calls(), 4)
  const long = await fallingOver(t, 1, '60')
  await t.throwsAsync(long.api.call('GET', '/api/hosts/1'), { code: 'unavailable' })
  const unkeyed = await fallingOver(t, 1, '2')
  await t.throwsAsync(unkeyed.api.call('POST', '/api/tasks'), { code: 'unavailable' })
  t.deepEqual([long.pauses, unkeyed.pauses], [[], []])
})

test('a call whose refusal is expected is not repeated', async (t) => {
  const { api, pauses, calls } = await fallingOver(t, Number.POSITIVE_INFINITY, '5')
  await t.throwsAsync(api.call('GET', '/api/hosts/1', { mayBeRefused: true }), { code: 'unavailable' })
  t.deepEqual([calls(), pauses], [1, []])
})

test('an aborted client stops waiting for a server that refuses', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts/1': (_seen, response) => {
      response.setHeader('retry-after', '14')
      envelope(response, 503, {})
    },
  })
  const closing = new AbortController()
  const waits: (boolean | undefined)[] = []
  const waiting = {
    now: () => 0,
    pause: async (_milliseconds: number, signal?: AbortSignal) => {
      closing.abort()
      waits.push(signal?.aborted)
    },
    refused: () => undefined,
  }
  const send = openTransport(openConnection({ url: server.url }))
  const api = new Api(server.url, send, 'x', undefined, waiting).until(closing.signal)
  await t.throwsAsync(api.call('GET', '/api/hosts/1'))
  t.deepEqual([waits, server.seen.length], [[true], 1])
})

for (const [title, more, said, silence] of [
  ['that stops halfway', undefined, /stopped half-way/, 300],
  ['that never ends', ' ', /its answer does not end/, 30_000],
] as const)
  test(`S12 a response ${title} is aborted`, async (t) => {
    const server = await startFakeServer(t, {
      'GET /api/hosts/1': (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"code":200,')
        if (more === undefined) return
        const dripping = setInterval(() => response.write(more), 20)
        response.once('close', () => clearInterval(dripping))
      },
    })
    const send = openTransport(openConnection({ url: server.url }), { silence })
    const api = new Api(server.url, send, 'x', more === undefined ? undefined : 1_000)
    const error = await t.throwsAsync(api.call('GET', '/api/hosts/1'), { instanceOf: RsmError })
    t.is(exitCode(error), 4)
    t.regex(error.message, said)
  })

test('a download that loses its connection fails with unreachable, and leaves no file', async (t) => {
  let lose = () => {}
  const server = await startFakeServer(t, {
    'GET /recording': (_seen, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('x')
      lose = () => response.destroy()
    },
  })
  const api = new Api(server.url, openTransport(openConnection({ url: server.url })), 'x')
  const file = join(temporaryDirectory(t), 'session.cast')
  const download = await api.download('/recording', '*/*')
  lose()
  const error = await t.throwsAsync(writeWholeFile(file, download), { instanceOf: RsmError })
  t.is(exitCode(error), 4, error.message)
  t.false(existsSync(file))
})

for (const [what, data, ask] of [
  ['a list', {}, (client) => client.hosts.list({})],
  ['a list that is an array', [], (client) => client.hosts.list({})],
  ['a login', {}, (client) => client.auth.login({ username: 'a', password: 'b' })],
  ['the caller', null, (client) => client.auth.me()],
  ['a task', { status: 'RUNNING' }, (client) => client.tasks.get('1')],
] as const satisfies [string, unknown, (client: Client) => Promise<unknown>][])
  test(`a response without its data is not from an rsm server: ${what}`, async (t) => {
    const answer = (_seen: unknown, response: ServerResponse) => envelope(response, 200, { data })
    const paths = ['GET /api/hosts', 'POST /api/auth/login', 'GET /api/auth/me', 'GET /api/tasks/1']
    const server = await startFakeServer(t, Object.fromEntries(paths.map((path) => [path, answer])))
    const error = await t.throwsAsync(ask(await openClient({ url: server.url })), { instanceOf: RsmError })
    t.is(exitCode(error), 6)
    t.is(error.message, `${server.url} answered 200 without the data, not like an rsm server`)
  })

test('an error says that a server is not an rsm server', async (t) => {
  const server = await startFakeServer(t, {
    'GET /api/hosts/1': (_seen, response) => void response.writeHead(502).end('<html>'),
  })
  const client = await openClient({ url: server.url })
  const error = await t.throwsAsync(client.hosts.get(1), { instanceOf: RsmError })
  t.is(error.code, 'unreachable')
  t.regex(error.message, /not like an rsm server/)
})

test('a new task whose response is lost is sent again with the same key', async (t) => {
  const keys: unknown[] = []
  const server = await startFakeServer(t, {
    'POST /api/tasks': (seen, response) => {
      keys.push(seen.headers['idempotency-key'])
      if (keys.length === 1) {
        response.destroy()
        return undefined
      }
      return { taskId: 'task-1', status: 'RUNNING', hostCount: 1 }
    },
  })
  const client = await openClient({ url: server.url, token: 'x' })
  const body = { script: { content: 'true' }, target: { selector: 'web1' } }
  const started = await client.tasks.create(body, 'key-1')
  t.is(started.taskId, 'task-1')
  t.deepEqual(keys, ['key-1', 'key-1'])
})

test('any other write whose response is lost is not repeated', async (t) => {
  const server = await startFakeServer(t, {
    'POST /api/hosts': (_seen, response) => void response.destroy(),
  })
  const client = await openClient({ url: server.url, token: 'x' })
  await t.throwsAsync(client.hosts.create({ hostname: 'a', ip: '192.0.2.1' }), { message: /connection lost/ })
  t.is(server.seen.length, 1)
})

test('a call to a server that is down fails at once, even with an idempotency key', async (t) => {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  const client = await openClient({ url: `http://127.0.0.1:${port}`, token: 'x' })
  const body = { script: { content: 'true' }, target: { selector: 'web1' } }
  const error = await t.throwsAsync(client.tasks.create(body, 'key'), { instanceOf: RsmError })
  t.is(exitCode(error), 4)
  t.regex(error.message, /connection refused/)
})

test('allPages joins all pages of a list, up to a limit', async (t) => {
  const all = Array.from({ length: 1203 }, (_, at) => hostNamed(at + 1, `web${at + 1}`))
  const server = await startFakeServer(t, {
    'GET /api/hosts': ({ query }) => {
      const page = Number(query.get('page'))
      const size = Number(query.get('size'))
      const content = all.slice(page * size, (page + 1) * size)
      return { content, page, size, totalElements: all.length, totalPages: Math.ceil(all.length / size) }
    },
  })
  const client = await openClient({ url: server.url, token: 'x' })
  const whole = await allPages((query) => client.hosts.list(query), {})
  t.deepEqual(
    whole.content.map((host) => host.id),
    all.map((host) => host.id),
  )
  const some = await allPages((query) => client.hosts.list(query), {}, 7)
  t.deepEqual([some.content.length, some.totalElements], [7, 1203])
})
