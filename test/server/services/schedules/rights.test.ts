import test, { type ExecutionContext } from 'ava'
import type { Schedule, ScheduleSlot } from '../../../../src/core/protocol/http/schedules.ts'
import { bindOlder } from '../../../../src/server/services/schedules/rights.ts'
import { startTestServer, type TestServer } from '../../../helpers/servers/server.ts'
import { startInsides } from '../../../helpers/servers/services.ts'
import { until } from '../../../helpers/until.ts'

interface World {
  server: TestServer
  /** Calls as `alice`, `bob` (OPERATORs) or `admin`. */
  as: (name: 'admin' | 'alice' | 'bob') => TestServer
  scriptId: number
  /** A schedule of alice with secret params. */
  nightly: Schedule
}

const target = { selector: '@*' }

/** A server with two OPERATORs, and a schedule whose secrets go to the script `content`. */
async function startWorld(t: ExecutionContext, content = 'dump'): Promise<World> {
  const server = await startTestServer(t)
  const tokens = { admin: server.token, alice: '', bob: '' }
  for (const username of ['alice', 'bob'] as const) {
    const login = { username, password: 'long enough' }
    await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
    tokens[username] = (await server.data('POST', '/api/auth/login', login)).token
  }
  const as: World['as'] = (name) => {
    server.token = tokens[name]
    return server
  }
  await server.data('POST', '/api/hosts', { hostname: 'db1', ip: '192.0.2.1' })
  const { id: scriptId } = await as('alice').data('POST', '/api/scripts', {
    name: 'dump',
    type: 'BASH',
    content,
  })
  const nightly = await as('alice').data('POST', '/api/schedules', {
    name: 'nightly',
    cron: '0 3 29 2 *',
    scriptId,
    target,
    queueSeconds: 0,
    secretParams: { DBPASS: 'hunter2' },
  })
  return { server, as, scriptId, nightly }
}

const reason =
  /^script dump changed since alice gave the secret params; alice or an ADMIN must .*rsm schedules confirm/

test('secret params are withheld from a script that another OPERATOR changed until they are confirmed', async (t) => {
  const { as, scriptId, nightly } = await startWorld(t)
  const path = `/api/schedules/${nightly.id}`
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: 'echo $DBPASS' })
  for (const name of ['alice', 'admin'] as const) {
    const { status, body } = await as(name).api('POST', `${path}/run`)
    t.is(status, 409)
    t.regex(body.message, reason)
  }
  await as('alice').data('PATCH', path, { timeout: 9 })
  t.is((await as('alice').api('POST', `${path}/run`)).status, 409, 'another change does not confirm')
  t.is((await as('bob').api('PATCH', path, { confirmed: true })).status, 403)
  t.like(await as('alice').data('PATCH', path, { confirmed: true }), {
    owner: 'alice',
    secretParams: ['DBPASS'],
  })
  t.is((await as('alice').api('POST', `${path}/run`)).status, 200)
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: 'base64 <<< $DBPASS' })
  t.is((await as('alice').api('POST', `${path}/run`)).status, 409)
  await as('alice').data('PATCH', path, { secretParams: { DBPASS: 'new' } })
  t.is(
    (await as('alice').api('POST', `${path}/run`)).status,
    200,
    'new secrets are bound to the current script',
  )
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: 'xxd <<< $DBPASS' })
  t.like(await as('admin').data('PATCH', path, { confirmed: true }), {
    owner: 'alice',
    secretParams: ['DBPASS'],
  })
  t.is((await as('admin').api('POST', `${path}/run`)).status, 200)
})

test('the slot of a schedule whose script another OPERATOR changed is FAILED with that reason', async (t) => {
  const { server, as, scriptId, nightly } = await startWorld(t)
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: 'echo $DBPASS' })
  await as('alice').data('PATCH', `/api/schedules/${nightly.id}`, { everySeconds: 1 })
  const slots = async (): Promise<ScheduleSlot[]> =>
    (await server.data('GET', `/api/schedules/${nightly.id}/history`)).content
  await until('its first slot is over', async () => (await slots()).length > 0)
  const [slot] = await slots()
  t.like(slot, { outcome: 'FAILED', taskId: null })
  t.regex(slot?.error ?? '', reason)
})

test('a changed script cannot probe secret params with its patterns', async (t) => {
  const { as, scriptId, nightly } = await startWorld(t)
  const asks = '# rsm: param DBPASS secret pattern="a.*"\ntrue'
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: asks })
  const { status, body } = await as('alice').api('POST', `/api/schedules/${nightly.id}/run`)
  t.is(status, 409)
  t.regex(body.message, reason)
})

test('stored verify and rollback scripts are bound like the script itself', async (t) => {
  const { as, nightly } = await startWorld(t)
  const path = `/api/schedules/${nightly.id}`
  for (const gate of ['verify', 'rollback']) {
    const script = { name: gate, type: 'BASH', content: 'true' }
    const { id } = await as('alice').data('POST', '/api/scripts', script)
    await as('alice').data('PATCH', path, { [gate]: { scriptId: id } })
    t.is((await as('alice').api('POST', `${path}/run`)).status, 200)
    await as('bob').data('PATCH', `/api/scripts/${id}`, { type: 'PYTHON', content: 'print(1)' })
    const { status, body } = await as('alice').api('POST', `${path}/run`)
    t.is(status, 409)
    t.true(body.message.startsWith(`script ${gate} changed since alice gave`))
    await as('alice').data('PATCH', path, { [gate]: null })
  }
})

test('secrets stay with a script changed by its owner or an ADMIN; a restore by another user needs confirmation', async (t) => {
  const { as, scriptId, nightly } = await startWorld(t)
  const script = `/api/scripts/${scriptId}`
  const run = async () => (await as('alice').api('POST', `/api/schedules/${nightly.id}/run`)).status
  for (const name of ['alice', 'admin'] as const) {
    await as(name).data('PATCH', script, { content: `echo ${name}` })
    t.is(await run(), 200)
  }
  await as('bob').data('PATCH', script, { description: 'dumps' })
  t.is(await run(), 200, 'only text and interpreter count')
  await as('bob').data('PATCH', script, { content: 'dump' })
  t.is(await run(), 409, 'the original text, restored by another user')
  await as('alice').data('PATCH', script, { type: 'PYTHON' })
  t.is(await run(), 409, 'a change around the text of another')
  await as('alice').data('PATCH', script, { content: 'print(2)' })
  t.is(await run(), 200)
})

test('a schedule with secrets is run by its owner and ADMINs, one without secrets by any OPERATOR', async (t) => {
  const { as, nightly } = await startWorld(t)
  const path = `/api/schedules/${nightly.id}`
  const { status, body } = await as('bob').api('POST', `${path}/run`)
  t.is(status, 403)
  t.is(
    body.message,
    "you are bob (OPERATOR); schedule nightly uses alice's secrets: only alice or an ADMIN may run it",
  )
  t.is((await as('admin').api('POST', `${path}/run`)).status, 200)
  await as('alice').data('PATCH', path, { secretParams: null })
  t.is((await as('bob').api('POST', `${path}/run`)).status, 200)
})

test('a secret file is bound to its script as well', async (t) => {
  const { server, as, scriptId, nightly } = await startWorld(t)
  const path = `/api/schedules/${nightly.id}`
  const upload = await fetch(`${server.url}/api/files?name=key&secret=true`, {
    method: 'POST',
    headers: { authorization: `Bearer ${as('alice').token}`, 'content-type': 'application/octet-stream' },
    body: 'hunter2',
  })
  const { data } = (await upload.json()) as { data: { fileId: string } }
  await as('alice').data('PATCH', path, { secretParams: null, stdin: { fileId: data.fileId } })
  t.is((await as('bob').api('POST', `${path}/run`)).status, 403)
  await as('bob').data('PATCH', `/api/scripts/${scriptId}`, { content: 'cat' })
  const { status, body } = await as('alice').api('POST', `${path}/run`)
  t.is(status, 409)
  t.regex(body.message, /changed since alice gave the secret file/)
  await as('alice').data('PATCH', path, { confirmed: true })
  t.is((await as('alice').api('POST', `${path}/run`)).status, 200)
})

test('secrets stored by an older server are bound to their scripts at the first start', async (t) => {
  const { context, services } = await startInsides(t)
  const { store } = context
  await services.hosts.create({ hostname: 'db1', ip: '192.0.2.1' })
  const { id: scriptId } = await services.scripts.create({ name: 'dump', type: 'BASH', content: 'dump' })
  const made = await services.schedules.create({
    name: 'nightly',
    cron: '0 3 29 2 *',
    scriptId,
    target,
    secretParams: { DBPASS: 'hunter2' },
  })
  await store.transact(async (tx) => {
    const record = await tx.get('schedules', made.id)
    if (!record) throw new Error('no such schedule')
    const { secretsFor: _, ...older } = record
    tx.put('schedules', older)
  })
  await services.schedules.run(made.id)
  await bindOlder(context)
  const bound = (await store.get('schedules', made.id))?.secretsFor
  t.deepEqual(Object.keys(bound ?? {}), [String(scriptId)])
  const evil = await store.get('scripts', scriptId)
  if (evil) await store.transact((tx) => tx.put('scripts', { ...evil, type: 'PYTHON' }))
  await bindOlder(context)
  await t.throwsAsync(services.schedules.run(made.id), {
    code: 'conflict',
    message: /changed since admin gave/,
  })
})
