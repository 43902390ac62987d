import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { backupOffline, examine } from '../../../src/server/app/offline.ts'
import {
  noteElsewhere,
  refuseElsewhere,
  refuseOther,
  refuseStoreInside,
} from '../../../src/server/storage/moved-store.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'

const first = { store: 'postgres://rsm@pg1:5432/rsm', storeId: 'first' }

test('a data directory remembers the external store of its server, at any address', async (t) => {
  const path = temporaryDirectory(t)
  await t.notThrowsAsync(refuseElsewhere(path, 'a hint'))
  await noteElsewhere(path, first)
  await noteElsewhere(path, { ...first, store: 'postgres://rsm@pg2:5432/rsm' })
  await t.notThrowsAsync(refuseOther(path, first))
  await t.throwsAsync(refuseOther(path, { ...first, storeId: 'second' }), {
    code: 'conflict',
    message: /was used with the store first at postgres:\/\/rsm@pg2:5432\/rsm/,
  })
  await t.throwsAsync(refuseElsewhere(path, 'a hint'), {
    code: 'conflict',
    message: /whose store is postgres/,
  })
  await writeFile(join(path, 'postgres.json'), 'torn')
  await t.throwsAsync(refuseElsewhere(path, 'a hint'), { message: /postgres\.json is damaged/ })
})

test('offline commands and starts on files refuse a directory whose store is elsewhere, and name that store', async (t) => {
  const path = temporaryDirectory(t)
  await noteElsewhere(path, first)
  const refused = { code: 'conflict', message: /whose store is postgres:\/\/rsm@pg1/ }
  await t.throwsAsync(backupOffline(path, undefined, { withOutput: true }), refused)
  await t.throwsAsync(examine(path, undefined, { running: null, host: '127.0.0.1', port: 0 }), refused)
  await t.throwsAsync(startInjectedServer(t, { dataDir: path }), refused)
})

test('a directory that contains a store is refused by a server with --store', async (t) => {
  const server = await startInjectedServer(t)
  await t.throwsAsync(refuseStoreInside(server.dataDir), { code: 'conflict', message: /a store of its own/ })
  await t.notThrowsAsync(refuseStoreInside(temporaryDirectory(t)))
})
