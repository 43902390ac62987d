import { join } from 'node:path'
import { createFileKeeper, defaultMaxFileSize } from '../../../../src/server/files/files.ts'
import { openDirectoryFiles } from '../../../../src/server/storage/files/directory-files.ts'
import { createLocalFacts } from '../../../../src/server/storage/local-facts.ts'
import type { Store } from '../../../../src/server/storage/ports/store.ts'
import { postgresGround } from '../../../helpers/servers/grounds.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'
import { startInsides } from '../../../helpers/servers/services.ts'

const ground = postgresGround(sharedPostgres())

async function* of(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

test('a file that a task takes while its removal is decided is kept', async (t) => {
  const { services, context, directory } = await startInsides(t, ground)
  const { store, keys, agreed, clock, log } = context
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const begun = await context.files.begin({ userId: 1, size: null, sha256: null, isSecret: false })
  const arrival = { bytes: of('text'), length: null, offset: 0, end: true }
  const { file } = await context.files.add(begun, arrival)
  const past = new Date(clock.now() - 48 * 3600_000).toISOString()
  await store.transact(async (tx) => tx.put('files', { ...file, createdAt: past, expiresAt: past }))
  const copy = { fileId: file.id, path: '/srv/f', kind: 'FILE' } as const
  let decided = 0
  const seen: Store = {
    ...store,
    transact: (work) =>
      store.transact(async (tx) => {
        const value = await work(tx)
        // The first run is dropped (`startInsides`); the second is the one to be committed.
        if (++decided === 2) await services.tasks.create({ copy, target: { hostIds: [hostId] } })
        return value
      }),
  }
  const files = await openDirectoryFiles(join(directory, 'files'))
  const parts = { store: seen, files, keys, facts: createLocalFacts(), agreed, clock, log }
  const keeper = createFileKeeper({ ...parts, maxFileSize: defaultMaxFileSize })
  t.is(await keeper.sweep(), 0)
  t.is((await store.get('files', file.id))?.id, file.id)
  t.is(await files.size(file.id), 4)
})
