import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Services } from '../../src/core/services.ts'
import { createBus } from '../../src/server/bus.ts'
import { systemClock as clock } from '../../src/server/clock.ts'
import { createArchive } from '../../src/server/engine/archive.ts'
import { createEngine } from '../../src/server/engine/engine.ts'
import { createFirstUser } from '../../src/server/first-user.ts'
import { loadKeys } from '../../src/server/keys.ts'
import { createLog } from '../../src/server/log.ts'
import { createFileOutputs } from '../../src/server/outputs/file-outputs.ts'
import { createPasswords } from '../../src/server/passwords.ts'
import { createPresence } from '../../src/server/presence.ts'
import { createContext } from '../../src/server/services/context.ts'
import { createFleet } from '../../src/server/services/fleet.ts'
import { createServices } from '../../src/server/services/services.ts'
import { openJsonStore } from '../../src/server/store/json/store.ts'
import { adminPassword } from './server.ts'

/** The server's own services on a real store, without HTTP, for its first user. */
export async function servicesOnStore(t: ExecutionContext): Promise<Services> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-services-'))
  const log = createLog('ERROR')
  const bus = createBus()
  const onFatal = (error: unknown) => {
    throw error
  }
  const store = await openJsonStore({
    directory: join(directory, 'store'),
    log: () => undefined,
    onFatal,
  })
  const keys = await loadKeys(join(directory, 'keys'))
  const presence = await createPresence({
    path: join(directory, 'presence.json'),
    heartbeatInterval: 30,
    bus,
    clock,
    log,
  })
  const tasks = join(directory, 'tasks')
  const outputs = createFileOutputs(tasks, bus, onFatal)
  const archive = createArchive(tasks)
  const engine = createEngine({ store, outputs, archive, presence, bus, keys, clock, log })
  const passwords = createPasswords()
  await createFirstUser(store, passwords, clock, adminPassword)
  const fleet = createFleet(store, presence)
  const context = createContext({ store, fleet, presence, engine, outputs, bus, keys, passwords, clock })
  t.teardown(async () => {
    await engine.stop()
    await outputs.close()
    await presence.close()
    await store.close()
    await rm(directory, { recursive: true, force: true })
  })
  return createServices(context)({
    type: 'user',
    id: 1,
    username: 'admin',
    role: 'ADMIN',
    tokenId: 1,
    tokenKind: 'session',
    expiresAt: Number.POSITIVE_INFINITY,
  })
}
