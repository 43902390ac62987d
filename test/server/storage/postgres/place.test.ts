import test from 'ava'
import { RsmError } from '../../../../src/core/errors.ts'
import { placeOf } from '../../../../src/server/storage/postgres/place.ts'

const store = 'postgres://rsm@pg1/rsm'
const all = { store, serverName: 'rsm-1.a', keysDir: '/keys' }

test('a server keeps its store in PostgreSQL if --store is given', (t) => {
  t.is(placeOf({}), null)
  t.is(placeOf({ keysDir: '/keys' }), null)
  t.is(placeOf({ ...all, insecureStore: true })?.address.tls.mode, 'disable')
  t.like(placeOf(all), { serverName: 'rsm-1.a', address: { user: 'rsm', database: 'rsm' } })
})

for (const [given, fault] of [
  [{ serverName: 'a' }, '--server-name goes with --store'],
  [{ storePasswordFile: '/x', serverName: 'a' }, '--store-password-file goes with --store'],
  [{ ...all, serverName: undefined }, '--store needs --server-name'],
  [{ store, serverName: 'a' }, '--store needs --keys'],
  [{ ...all, serverName: 'a/b' }, 'invalid --server-name: a/b'],
  [{ ...all, serverName: '' }, 'invalid --server-name: empty name'],
  [{ ...all, serverName: 'a'.repeat(64) }, 'invalid --server-name: aaa'],
  [{ ...all, store: `${store}?sslmode=disable` }, '--store has sslmode=disable for pg1'],
  [{ ...all, store: 'postgres://rsm@pg1' }, '--store has no database'],
] as const)
  test(`options are refused with: ${fault}`, (t) => {
    const error = t.throws(() => placeOf(given), { instanceOf: RsmError, code: 'usage' })
    t.true(error?.message.startsWith(fault), error?.message)
    t.truthy(error?.hint)
  })
