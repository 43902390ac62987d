import test from 'ava'
import { startInjectedServer } from '../../helpers/servers/server.ts'

test('lists in a target are limited, and the error states the limit in words', async (t) => {
  const server = await startInjectedServer(t)
  const many = Array.from({ length: 20_001 }, () => 'a')
  for (const [target, message] of [
    [{ hosts: [] }, 'must not be empty'],
    [{ hosts: many }, 'must have at most 20000 entries'],
  ] as const) {
    const { status, body } = await server.api('POST', '/api/hosts/select', { target })
    t.is(status, 400)
    t.deepEqual(body.errors, [{ field: 'target.hosts', message }])
  }
})

test('selecting the hosts of a target is a read: no audit entry, and no effect of an idempotency key', async (t) => {
  const server = await startInjectedServer(t)
  await server.enroll('web1')
  const entries = async () => (await server.data('GET', '/api/audit')).totalElements as number
  const before = await entries()
  const select = (target: object) =>
    server.api('POST', '/api/hosts/select', { target }, { 'idempotency-key': 'one' })
  t.is((await select({ all: true })).body.data.totalElements, 1)
  t.is((await select({ hosts: ['web1'] })).status, 200)
  t.is((await select({ hosts: ['web2'] })).status, 400)
  t.is(await entries(), before)
})
