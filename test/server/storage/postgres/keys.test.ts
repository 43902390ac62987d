import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RsmError } from '../../../../src/core/errors.ts'
import { loadKeys } from '../../../../src/server/storage/keys.ts'
import type { Store } from '../../../../src/server/storage/ports/store.ts'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'
import { openStore } from '../../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'
import { user } from '../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()
const at = '2026-03-02T09:30:12.502Z'

const load = (store: Store, directory: string, newKeys = false) => loadKeys(directory, { store, newKeys, at })

test('A05 one of several servers that create keys for an empty store at the same time wins, and the others refuse', async (t) => {
  const url = await (await postgres).database()
  const root = temporaryDirectory(t)
  const names = ['a', 'b', 'c']
  const stores = await Promise.all(names.map(async (name) => (await openStore(t, url, name)).store))
  const starts = await Promise.allSettled(
    stores.map((store, server) => load(store, join(root, names[server] ?? ''))),
  )
  const won = starts.findIndex(({ status }) => status === 'fulfilled')
  for (const [server, start] of starts.entries()) {
    if (server === won) continue
    t.like(start, { status: 'rejected', reason: { code: 'unavailable' } })
    // The second message comes if a server looks for its keys only after the store was created.
    t.regex(
      String((start as PromiseRejectedResult).reason),
      /is not the key that another server created this store with|is missing, and the store was used with it/,
    )
  }
  const [first, second] = [names[won] ?? '', names[(won + 1) % 3] ?? '']
  const [store] = stores
  if (!store) throw new Error('there are three')
  await t.throwsAsync(load(store, join(root, second)), {
    message: /(is damaged, or is the key of another store|is missing), and the store was used with it/,
  })
  await cp(join(root, first), join(root, second), { recursive: true })
  const { keys } = await load(store, join(root, second))
  t.is(keys.serverKey, (await load(store, join(root, first))).keys.serverKey)
})

test('A05 a server without the keys of its store creates none', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  const root = temporaryDirectory(t)
  await load(store, join(root, 'a'))
  await t.throwsAsync(load(store, join(root, 'b')), { message: /b\/seal.key is missing/ })
  await t.throwsAsync(readFile(join(root, 'b', 'seal.key')), { code: 'ENOENT' })
  const known = { store, newKeys: false, at, others: ['rsm1', 'rsm2'] }
  const refusal = await t.throwsAsync<RsmError>(loadKeys(join(root, 'b'), known))
  t.is(refusal?.hint, 'nothing was changed; copy keys/ from rsm1, which runs on this store')
  await store.transact((tx) => tx.put('users', user(1, 'admin')))
  const { replaced } = await load(store, join(root, 'b'), true)
  t.deepEqual(replaced?.keys, ['seal.key', 'signing.key'])
  await t.throwsAsync(load(store, join(root, 'a')), {
    message: /a\/seal.key is damaged, or is the key of another store/,
  })
})
