import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../../src/disk/log.ts'
import { openFileStore } from '../../../src/server/storage/files/open.ts'
import type { MakeServers } from '../../contracts/engines.ts'
import { ShiftedClock } from '../faults/shifted-clock.ts'

/** One open data directory that all servers share. */
export const serversOfDirectory: MakeServers = async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-engines-'))
  const clock = new ShiftedClock()
  const log = createLog('ERROR')
  const data = await openFileStore(directory, {
    heartbeatInterval: 30,
    metrics: { journalSynced: () => undefined, outputSynced: () => undefined },
    keysDirectory: join(directory, 'keys'),
    newKeys: false,
    clock,
    log,
    onFatal(error) {
      throw error
    },
  })
  // Registered first, so it runs last: after all servers have ended.
  t.teardown(async () => {
    await data.close()
    await rm(directory, { recursive: true, force: true })
  })
  return {
    partsOf: async () => ({ parts: { ...data, clock, log }, end: async () => undefined }),
    async forward(time) {
      clock.forward(time / 1000)
    },
  }
}
