import test from 'ava'
import { type Answer, startInjectedServer, type TestServer } from '../../helpers/servers/server.ts'

const content = `#!/bin/bash
# rsm: param VERSION required pattern="\\d+(\\.\\d+)*" "like 1.2.3"
# rsm: param KEEP default=3 pattern="\\d+"
# rsm: param DB_PASSWORD required secret
rm -rf "/srv/$VERSION"/*
`

interface Options {
  params?: Record<string, string>
  secretParams?: Record<string, string>
}

/** Every call that executes a stored script, each with the same script. */
async function calls(server: TestServer) {
  const { hostId } = await server.enroll('web1')
  const script = await server.data('POST', '/api/scripts', { name: 'deploy', type: 'BASH', content })
  const { id: clusterId } = await server.data('POST', '/api/clusters', { name: 'web', hostIds: [hostId] })
  const post = (path: string, body: object) => server.api('POST', path, body)
  const more = { queueSeconds: 0 }
  const ways: Record<string, (options: Options) => Promise<Answer>> = {
    'POST /api/tasks': (options) =>
      post('/api/tasks', { scriptId: script.id, target: { hostIds: [hostId] }, ...more, ...options }),
    'POST /api/scripts/{id}/execute': (options) =>
      post(`/api/scripts/${script.id}/execute`, { hostIds: [hostId], ...more, ...options }),
    'POST /api/clusters/{id}/execute': (options) =>
      post(`/api/clusters/${clusterId}/execute`, { scriptId: script.id, ...more, ...options }),
  }
  return { hostId, script, ways }
}

const secret = { DB_PASSWORD: 'hush' }
const good: Options = { params: { VERSION: '1.2' }, secretParams: secret }

test('A15 every call that executes a stored script names missing, unknown, exposed or mismatched params and starts nothing', async (t) => {
  const server = await startInjectedServer(t)
  const { ways } = await calls(server)
  const cases: [options: Options, faults: Record<string, RegExp>][] = [
    [
      {},
      {
        'params.VERSION': /^is required by deploy \(like 1\.2\.3\)$/,
        'secretParams.DB_PASSWORD': /^is required by deploy$/,
      },
    ],
    [
      { params: { VERSION: '' }, secretParams: { DB_PASSWORD: '' } },
      { 'params.VERSION': /^is required/, 'secretParams.DB_PASSWORD': /^is required/ },
    ],
    [
      { params: { VERSION: '1', KEPE: '4' }, secretParams: { ...secret, EXTRA: 'x' } },
      {
        'params.KEPE': /^is not a param of deploy \(did you mean KEEP\?\)$/,
        'secretParams.EXTRA': /^is not a param of deploy \(it declares VERSION, KEEP, DB_PASSWORD\)$/,
      },
    ],
    [
      { params: { VERSION: '1', DB_PASSWORD: 'hush' } },
      { 'params.DB_PASSWORD': /^is secret: give it in secretParams$/ },
    ],
    [
      { params: { VERSION: '1; reboot', KEEP: '' }, secretParams: secret },
      {
        'params.VERSION': /^does not match its pattern, \\d\+\(\\\.\\d\+\)\*$/,
        'params.KEEP': /^does not match its pattern/,
      },
    ],
    [
      { params: { KEEP: '5' }, secretParams: { VERSION: 'x', ...secret } },
      { 'secretParams.VERSION': /^does not match its pattern/ },
    ],
  ]
  for (const [way, call] of Object.entries(ways)) {
    for (const [options, faults] of cases) {
      const { status, body } = await call(options)
      t.is(status, 400, way)
      const told = Object.fromEntries((body.errors ?? []).map(({ field, message }) => [field, message]))
      t.deepEqual(Object.keys(told).sort(), Object.keys(faults).sort(), `${way}: ${body.message}`)
      for (const [field, message] of Object.entries(faults)) t.regex(told[field] ?? '', message, way)
      t.false(JSON.stringify(body).includes('hush'))
    }
  }
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
  for (const [way, call] of Object.entries(ways)) {
    const { status, body } = await call(good)
    t.is(status, 200, `${way}: ${body.message}`)
    const { params } = await server.data('GET', `/api/tasks/${body.data.taskId}`)
    t.deepEqual(params, { VERSION: '1.2', KEEP: '3' }, 'with the defaults, which the task shows')
  }
})

test('A15 a retry validates declared params too; scripts without declarations accept any params', async (t) => {
  const server = await startInjectedServer(t)
  const { hostId, ways } = await calls(server)
  const { body } = (await ways['POST /api/tasks']?.({ ...good })) ?? { body: { data: null } }
  const { taskId } = body.data
  while ((await server.data('GET', `/api/tasks/${taskId}`)).status === 'RUNNING');
  const retry = (secretParams: object) => server.api('POST', `/api/tasks/${taskId}/retry`, { secretParams })
  const empty = await retry({ DB_PASSWORD: '' })
  t.is(empty.status, 400)
  t.deepEqual(empty.body.errors, [{ field: 'secretParams.DB_PASSWORD', message: 'is required by deploy' }])
  const again = await retry(secret)
  t.is(again.status, 200)
  t.deepEqual((await server.data('GET', `/api/tasks/${again.body.data.taskId}`)).params, {
    VERSION: '1.2',
    KEEP: '3',
  })
  const free = await server.data('POST', '/api/scripts', { name: 'free', type: 'BASH', content: 'env' })
  const target = { hostIds: [hostId] }
  const params = { ANY: '1' }
  t.is((await server.api('POST', '/api/tasks', { scriptId: free.id, target, params })).status, 200)
  t.is((await server.api('POST', '/api/tasks', { script: { content }, target, params })).status, 200)
})

test('A15 a script with unreadable or unenforceable declarations is not stored, with line and column', async (t) => {
  const server = await startInjectedServer(t)
  const add = (text: string) =>
    server.api('POST', '/api/scripts', { name: 'bad', type: 'BASH', content: `${text}\ntrue\n` })
  const cases: [text: string, fault: RegExp][] = [
    ['# rsm: param PATH', /^line 1, column 14: PATH decides which programs/],
    ['#!/bin/bash\n# rsm: param A required, parm B', /^line 2, column 26: expected/],
    ['# rsm: param A pattern="("', /^the pattern of A is not valid in RE2/],
    ['# rsm: param A pattern=', /^line 1, column 16: pattern= has no value/],
    [`# rsm: param A pattern=${'a'.repeat(201)}`, /^line 1, column 16: a pattern has at most 200 characters/],
    ['# rsm: param A default=x pattern="[0-9]+"', /^the pattern of A does not match the default/],
  ]
  for (const [text, fault] of cases) {
    const { status, body } = await add(text)
    t.is(status, 400, text)
    t.deepEqual(
      body.errors?.map(({ field }) => field),
      ['content'],
    )
    t.regex(body.errors?.[0]?.message ?? '', fault)
  }
  const { id } = await server.data('POST', '/api/scripts', { name: 'good', type: 'BASH', content: 'true' })
  const patch = await server.api('PATCH', `/api/scripts/${id}`, { content: '# rsm: param PATH\n' })
  t.is(patch.status, 400)
})
