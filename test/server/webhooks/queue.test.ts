import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { webhookQueueContract } from '../../contracts/webhook-queue.ts'

webhookQueueContract(test, 'on the store,', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-queue-'))
  const store = await openJsonStore({
    directory,
    log: () => undefined,
    onFatal(error) {
      throw error
    },
  })
  t.teardown(async () => {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  })
  return store
})
