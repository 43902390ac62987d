import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { createLog } from '../../../../src/disk/log.ts'
import { createPresence } from '../../../../src/server/storage/files/presence.ts'
import { createLocalHints } from '../../../../src/server/storage/local-hints.ts'
import { presenceContract } from '../../../contracts/presence.ts'

presenceContract(test, async (t, options) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-presence-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const hints = createLocalHints()
  const place = { path: join(directory, 'presence.json'), hints, log: createLog('ERROR'), version: '0.1.0' }
  const again = async () => {
    const presence = await createPresence({ ...place, ...options })
    t.teardown(() => presence.close())
    return presence
  }
  return { presence: await again(), hints, again }
})
