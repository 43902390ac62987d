import { request } from 'node:http'
import test from 'ava'
import { type Answer, startTestServer, type TestServer } from '../../helpers/servers/server.ts'

const host = { hostname: 'web1', ip: '10.0.0.1' }
const named = (answer: Answer) => answer.body.errors?.map(({ field }) => field).sort()

/** Sends a request as written: `fetch` would normalise the path. */
function raw(server: TestServer, method: string, path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>(
    (resolve, reject) => {
      const { port } = new URL(server.url)
      const asked = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
        let body = ''
        response.on('data', (chunk: Buffer) => {
          body += chunk.toString()
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        )
      })
      asked.on('error', reject)
      asked.end()
    },
  )
}

test('a response lists all errors of a body, each field with a message', async (t) => {
  const server = await startTestServer(t)
  const answer = await server.api('POST', '/api/hosts', {
    hostname: '   ',
    ip: 'nowhere',
    sshPort: 70_000,
    authType: 'MAGIC',
    tags: { ok: 1, 'b d': 'x' },
    colour: 'red',
  })
  t.is(answer.status, 400)
  t.is(answer.body.code, 400)
  const faults = Object.fromEntries(answer.body.errors?.map(({ field, message }) => [field, message]) ?? [])
  t.is(faults['hostname'], 'must not be blank')
  t.is(faults['colour'], 'unknown field')
  t.deepEqual(Object.keys(faults).sort(), [
    'authType',
    'colour',
    'hostname',
    'ip',
    'sshPort',
    'tags.b d',
    'tags.ok',
  ])
  t.deepEqual((await server.api('POST', '/api/hosts', {})).body.errors, [
    { field: 'hostname', message: 'must not be blank' },
    { field: 'ip', message: 'must not be blank' },
  ])
  t.is((await server.data('GET', '/api/hosts')).totalElements, 0)
})

for (const [what, text] of [
  ['malformed', '{"hostname":'],
  ['an array', '[]'],
  ['a string', '"x"'],
  ['null', 'null'],
  ['with __proto__', '{"hostname":"a","ip":"1.1.1.1","__proto__":{"role":"ADMIN"}}'],
  ['with constructor.prototype', '{"hostname":"a","ip":"1.1.1.1","constructor":{"prototype":{"x":1}}}'],
  ['nested 33 deep', `{"hostname":"a","ip":"1.1.1.1","tags":${'['.repeat(32)}${']'.repeat(32)}}`],
  ['nested 100,000 deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ['with a NUL in a name', '{"hostname":"a\\u0000b","ip":"1.1.1.1"}'],
  ['with a lone surrogate', '{"hostname":"a\\ud800","ip":"1.1.1.1"}'],
  ['with a name that reads as an option', '{"hostname":"--all","ip":"1.1.1.1"}'],
  ['with a name that is a directory', '{"hostname":"..","ip":"1.1.1.1"}'],
  ['with a number for a string', '{"hostname":7,"ip":"1.1.1.1"}'],
  ['with a string for a number', '{"hostname":"a","ip":"1.1.1.1","sshPort":"22"}'],
  ['with a huge number', '{"hostname":"a","ip":"1.1.1.1","sshPort":1e400}'],
] as const)
  test(`a request body (${what}) is refused with 400, and no host is created`, async (t) => {
    const server = await startTestServer(t)
    const answer = await server.api('POST', '/api/hosts', text)
    t.is(answer.status, 400)
    t.is(answer.body.code, 400)
    t.false(/at .*\.js|\/src\//.test(JSON.stringify(answer.body)))
    t.is((await server.data('GET', '/api/hosts')).totalElements, 0)
  })

test('an unknown id in a path is 404, in whatever form', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', host)
  const ids = [
    '0',
    '-1',
    '9007199254740992',
    '1e0',
    'abc',
    '..%2f1',
    '%00',
    '1.0',
    '01',
    '+1',
    ' 1',
    '%31%20',
    '1,2',
  ]
  for (const id of ids)
    for (const noun of ['hosts', 'scripts', 'clusters', 'users', 'tasks']) {
      const { status, body } = await server.api('GET', `/api/${noun}/${encodeURI(id)}`.replaceAll('%25', '%'))
      t.is(status, 404, `${noun}/${id}`)
      t.is(body.code, 404)
    }
  t.is((await server.api('GET', `/api/tasks/${'x'.repeat(3000)}`)).status, 404)
  t.is((await server.api('GET', '/api/hosts/1')).status, 200)
})

test('query parameters are coerced, and refused if unknown, repeated or out of range', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', { ...host, tags: { env: 'prod', zone: 'a' } })
  const bad: [string, string][] = [
    ['page=-1', 'page'],
    ['page=x', 'page'],
    ['page=', 'page'],
    ['page=1.5', 'page'],
    ...[
      '1e9999',
      '0x10',
      '0b1',
      '%2B1',
      '%201',
      '1%20',
      '01',
      '00',
      'Infinity',
      'NaN',
      '1e3',
      '1_0',
      '٣',
    ].map((text): [string, string] => [`page=${text}`, 'page']),
    ['size=1e1', 'size'],
    ['clusterId=0x1', 'clusterId'],
    ['size=0', 'size'],
    ['size=501', 'size'],
    ['page=1&page=2', 'page'],
    ['status=DEAD', 'status'],
    ['clusterId=0', 'clusterId'],
    ['pgae=1', 'pgae'],
    ['__proto__=1', '__proto__'],
    ['tag=env', 'tag[0]'],
    ['selector=nosuch', 'selector'],
  ]
  for (const [query, field] of bad) {
    const answer = await server.api('GET', `/api/hosts?${query}`)
    t.is(answer.status, 400, query)
    t.deepEqual(named(answer), [field], query)
  }
  const found = async (query: string) => (await server.data('GET', `/api/hosts?${query}`)).totalElements
  t.is(await found('tag=env:prod&tag=zone:a'), 1)
  t.is(await found('tag=env:prod&tag=zone:b'), 0)
  t.is(await found('tag=constructor:x'), 0)
  t.is(await found('search=WEB'), 1)
  t.is(await found('search=10.0'), 1)
  t.is(await found('selector=web*'), 1)
  t.is(await found('status=ONLINE'), 0)
  t.is(await found('clusterId=77'), 0)
})

test('checks come in the order 401, 403, 404 and 405, 413 and 415, 400, 409', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/hosts', host)
  await server.data('POST', '/api/users', { username: 'viewer', password: 'long enough', role: 'VIEWER' })
  const { token } = await server.data('POST', '/api/auth/login', {
    username: 'viewer',
    password: 'long enough',
  })
  const huge = `{"x":"${'x'.repeat(2 * 1024 * 1024)}"}`
  const viewer = { authorization: `Bearer ${token}` }
  t.is((await server.api('PATCH', '/api/hosts/9', huge, { authorization: 'x' })).status, 401)
  t.is((await server.api('PATCH', '/api/hosts/9', huge, viewer)).status, 403)
  t.is((await server.api('PATCH', '/api/hosts/9', huge)).status, 404)
  t.is((await server.api('PUT', '/api/hosts/1', huge)).status, 405)
  t.is((await server.api('PATCH', '/api/hosts/1', huge)).status, 413)
  t.is((await server.api('PATCH', '/api/hosts/1', 'a=b', { 'content-type': 'text/plain' })).status, 415)
  t.is((await server.api('POST', '/api/hosts', { ...host, x: 1 })).status, 400)
  t.is((await server.api('POST', '/api/hosts', { ...host, hostname: 'WEB1' })).status, 409)
})

test('a wrong method is 405 with Allow; an unknown path is 404, without a valid token 401', async (t) => {
  const server = await startTestServer(t)
  const answer = await server.api('PUT', '/api/hosts')
  t.is(answer.status, 405)
  t.is(answer.headers.get('allow'), 'GET, POST')
  t.is((await server.api('DELETE', '/api/agent/heartbeat')).headers.get('allow'), 'POST')
  const unknown = await server.api('GET', '/api/nosuch?x=1')
  t.is(unknown.status, 404)
  t.is(unknown.body.message, 'No such path: /api/nosuch')
  t.is((await server.api('GET', '/api/nosuch', undefined, { authorization: '' })).status, 401)
  t.is((await server.api('GET', '/nosuch', undefined, { authorization: '' })).status, 401)
})

test('a body of 2 MiB is accepted, one byte more is 413; script content is limited in bytes', async (t) => {
  const server = await startTestServer(t)
  const body = (length: number) => {
    const text = JSON.stringify({ name: 's', type: 'BASH', content: 'x', description: '' })
    return text.replace('""', `"${' '.repeat(length - text.length)}"`)
  }
  t.is((await server.api('POST', '/api/scripts', body(2 * 1024 * 1024))).status, 400)
  t.is((await server.api('POST', '/api/scripts', body(2 * 1024 * 1024 + 1))).status, 413)
  const content = 'ü'.repeat(512 * 1024)
  t.is((await server.api('POST', '/api/scripts', { name: 'fits', type: 'BASH', content })).status, 201)
  const over = await server.api('POST', '/api/scripts', {
    name: 'over',
    type: 'BASH',
    content: `${content}x`,
  })
  t.is(over.status, 400)
  t.deepEqual(named(over), ['content'])
})

test('a body may be omitted if no field is required', async (t) => {
  const server = await startTestServer(t)
  t.is((await server.api('POST', '/api/enrollment-tokens')).status, 201)
  const empty = { 'content-type': 'application/json' }
  t.is((await server.api('POST', '/api/enrollment-tokens', '', empty)).status, 201)
  const { id } = await server.data('POST', '/api/hosts', host)
  t.is((await server.api('DELETE', `/api/hosts/${id}`, '', empty)).status, 200)
  t.deepEqual(named(await server.api('POST', '/api/tasks')), ['target'])
})

test("every response has nosniff and X-Request-Id, the request's own id if that is well-formed", async (t) => {
  const server = await startTestServer(t)
  const authorization = `Bearer ${server.token}`
  const given = await raw(server, 'GET', '/api/hosts', { authorization, 'x-request-id': 'ci-17.a_B' })
  t.is(given.headers['x-request-id'], 'ci-17.a_B')
  for (const path of [
    '/api/hosts',
    '/api/nosuch',
    '/api/hosts/%zz',
    '/api/hosts/../../etc/passwd',
    '/%',
    '//',
    '/api/hosts/9',
  ]) {
    const answer = await raw(server, 'GET', path, { authorization, 'x-request-id': 'with space' })
    t.regex(String(answer.headers['x-request-id']), /^[0-9a-z]{7,13}$/, path)
    t.is(answer.headers['x-content-type-options'], 'nosniff', path)
    t.is(JSON.parse(answer.body).code, answer.status, path)
    t.true(answer.status < 500)
    t.is(answer.headers['server'], undefined)
    t.is(answer.headers['x-powered-by'], undefined)
  }
})

test('HEAD returns the same as GET without a body, and does not hang on a followed log', async (t) => {
  const server = await startTestServer(t)
  const authorization = `Bearer ${server.token}`
  t.is((await raw(server, 'HEAD', '/api/hosts', { authorization })).status, 200)
  t.is((await raw(server, 'HEAD', '/api/hosts', {})).status, 401)
  t.is((await raw(server, 'HEAD', '/api/hosts/7', { authorization })).status, 404)
  const { hostId } = await server.enroll('web1')
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'x' },
    target: { hostIds: [hostId] },
  })
  const answer = await raw(server, 'HEAD', `/api/tasks/${taskId}/logs?follow=true`, { authorization })
  t.is(answer.status, 200)
  t.is(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.is(answer.body, '')
})

const repeated = (text: string, times: number) => Array.from({ length: times }, () => text).join(',')
const keys = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')

test('S10 a body with more keys, objects or elements than any call needs is a short 400', async (t) => {
  const server = await startTestServer(t)
  for (const [path, text] of [
    ['/api/users', `{${keys(170_000)}}`],
    ['/api/users', `{"\\u0061":1,${keys(100_000)}}`],
    ['/api/clusters', `{"name":"x","hostIds":[${repeated('0', 1_000_001)}]}`],
    ['/api/clusters', `{"name":"x","hostIds":[${repeated('{}', 30_000)}]}`],
  ] as const) {
    const answer = await server.api('POST', path, text)
    t.is(answer.status, 400)
    t.is(answer.body.message.slice(0, 100), 'The JSON has more than 20000 keys or 120000 list elements')
  }
})

test('S10 a response to many errors lists 100 of them, names 10 in its message, and has the total', async (t) => {
  const server = await startTestServer(t)
  const long = 'k'.repeat(500)
  for (const [path, text, total] of [
    ['/api/clusters', `{"name":"x","hostIds":[${repeated('0', 100_000)}]}`, 100_000],
    ['/api/clusters', `{"name":"x","hostIds":[${repeated('0', 101)}]}`, 101],
    ['/api/users', `{"username":"a","password":"b",${keys(19_000)}}`, 19_002],
    ['/api/hosts', `{"hostname":"a","ip":"1.1.1.1","${long}":1,${keys(200)}}`, 201],
  ] as const) {
    const { status, body } = await server.api('POST', path, text)
    t.is(status, 400)
    t.is(body.errors?.length, 100)
    t.is(body.errors?.at(-1)?.message, `and ${total - 99} more`)
    t.true(body.message.endsWith(`; and ${total - 10} more`), body.message.slice(-100))
    t.true(JSON.stringify(body).length < 20_000)
  }
  const hundred = await server.api('POST', '/api/clusters', { name: 'x', hostIds: Array(100).fill(0) })
  t.is(hundred.body.errors?.at(-1)?.field, 'hostIds[99]')
  const eleven = await server.api('POST', '/api/clusters', { name: 'x', hostIds: Array(11).fill(0) })
  t.true(eleven.body.message.includes('hostIds[10]: '), eleven.body.message)
})

test('S10 a value that fits none of many alternatives gets one sentence, and a fast response', async (t) => {
  const server = await startTestServer(t)
  const { status, body } = await server.api(
    'POST',
    '/api/tasks',
    `{"script":{"content":"true"},"target":{"hostIds":[1]},"batchSize":[${repeated('"x"', 100_000)}]}`,
  )
  t.is(status, 400)
  const forms =
    'a whole number from 1 to 100000, a percentage from "1%" to "100%", or a list of 1 to 100 of these, like [1, "10%", "50%"]'
  t.deepEqual(body.errors, [{ field: 'batchSize', message: `must be ${forms}` }])
  for (const batchSize of ['25', '101%', '0%', '00%', 0, [], [1, '0%']]) {
    const given = { script: { content: 'true' }, target: { hostIds: [1] }, strategy: 'ROLLING', batchSize }
    const refused = await server.api('POST', '/api/tasks', given)
    t.deepEqual(refused.body.errors, [{ field: 'batchSize', message: `must be ${forms}` }], String(batchSize))
  }
})

test('a number that overflows is a 400, and not stored as a metric of the host', async (t) => {
  const server = await startTestServer(t)
  const { agentId, hostId, token } = await server.enroll('web1')
  const metrics = {
    agentId,
    timestamp: new Date().toISOString(),
    cpu: { usagePercent: 123, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
    memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: 99 },
    disk: [],
    network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
  }
  const text = JSON.stringify(metrics).replace('123', '1e999')
  const auth = { authorization: `Bearer ${token}` }
  const answer = await server.api('POST', '/api/agent/metrics', text, auth)
  t.is(answer.status, 400)
  t.deepEqual(named(answer), ['cpu.usagePercent'])
  const beat = `{"agentId":"${agentId}","status":"HEALTHY","uptime":1e999}`
  t.is((await server.api('POST', '/api/agent/heartbeat', beat, auth)).status, 400)
  t.is((await server.data('GET', `/api/hosts/${hostId}`)).metrics ?? null, null)
})

test('names of params that change how programs run are reported with all other errors of the body', async (t) => {
  const server = await startTestServer(t)
  const { status, body } = await server.api('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { hostIds: [1] },
    params: { PATH: '/x', OK: '1', 'a b': '', LD_PRELOAD: 7 },
    secretParams: { IFS: 'x' },
    maxFailures: 'many',
    colour: 'red',
  })
  t.is(status, 400)
  const faults = Object.fromEntries(body.errors?.map(({ field, message }) => [field, message]) ?? [])
  t.deepEqual(Object.keys(faults).sort(), [
    'colour',
    'maxFailures',
    'params.LD_PRELOAD',
    'params.PATH',
    'params.a b',
    'secretParams.IFS',
  ])
  t.is(
    faults['params.PATH'],
    'PATH decides which programs and folders are found: choose another name, or set it inside the script',
  )
  t.is(faults['maxFailures'], 'must be a whole number from 0 to 100000, or a percentage from "0%" to "100%"')
})

test('batches and pauses with a strategy that does not support them are a 400 with advice', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const { id } = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'true' })
  const task = { script: { content: 'true' }, target: { hostIds: [hostId] } }
  const refused = await server.api('POST', '/api/tasks', { ...task, batchSize: 1, pauseSeconds: 5 })
  t.is(refused.status, 400)
  t.deepEqual(refused.body.errors, [
    { field: 'batchSize', message: 'is for ROLLING, not PARALLEL: add "strategy": "ROLLING"' },
    {
      field: 'pauseSeconds',
      message: 'is between batches, and PARALLEL has only one: use "strategy": "ROLLING" or "SEQUENTIAL"',
    },
  ])
  const sequential = { strategy: 'SEQUENTIAL', pauseSeconds: 5 }
  const execute = (options: object) =>
    server.api('POST', `/api/scripts/${id}/execute`, { hostIds: [hostId], ...options })
  t.deepEqual(named(await execute({ ...sequential, batchSize: 1 })), ['batchSize'])
  t.is((await execute(sequential)).status, 200)
  t.is((await execute({ strategy: 'ROLLING', batchSize: '1%', pauseSeconds: 5 })).status, 200)
  t.is((await execute({ pauseSeconds: 0 })).status, 200)
})

test('an empty target is a 400 that says what is empty', async (t) => {
  const server = await startTestServer(t)
  await server.enroll('web1')
  const { id } = await server.data('POST', '/api/clusters', { name: 'Emp' })
  for (const [target, why] of [
    [{ clusterId: id }, ': cluster Emp has no hosts'],
    [{ selector: '@emp' }, ': cluster Emp has no hosts'],
    [{ selector: 'web1!web*' }, ': excluding web* leaves none of 1 host'],
    [{ hostIds: [] }, ''],
  ] as const) {
    const { status, body } = await server.api('POST', '/api/tasks', { script: { content: 'true' }, target })
    t.is(status, 400)
    t.is(body.errors?.[0]?.message, `matches no host${why}`)
  }
})

test('A16 an invalid tag is refused with the format of keys and values', async (t) => {
  const server = await startTestServer(t)
  const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const { body } = await server.api('PATCH', `/api/hosts/${id}`, { tags: { 'a b': 'c' } })
  t.deepEqual(
    body.errors?.map(({ field }) => field),
    ['tags'],
  )
  t.regex(
    body.errors?.[0]?.message ?? '',
    /^must be tags, as \{"role": "web"\}: keys of up to 63 letters, digits/,
  )
})
