import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPresence } from '../../../src/server/storage/files/presence.ts'
import { loadKeys } from '../../../src/server/storage/keys.ts'
import { openChannel } from '../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../src/server/storage/postgres/hints/hints.ts'
import { beginRun } from '../../../src/server/storage/postgres/runs.ts'
import { enginesContract, type MakeServers, silentEnginesContract } from '../../contracts/engines.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'

/** The tests of this file run their servers at the same time. */
const postgres = startPostgres(atExit, { max_connections: '600' })

const make: MakeServers = async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-engines-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const shared = await sharedStore(await postgres, (end) => t.teardown(end))
  const machines: { forward(seconds: number): void }[] = []
  let count = 0
  return {
    async partsOf(name) {
      const own = await shared.server(name)
      machines.push(own.system)
      const channel = await openChannel(own)
      const hints = createHints(channel, own.log)
      const server = await executingServer({ server: async () => own }, name, hints)
      const { database, store, clock, log } = server
      const serverRuns = await beginRun({ database, store, clock, log, onFatal: () => undefined })
      const { keys } = await loadKeys(join(directory, 'keys'), {
        store,
        newKeys: false,
        at: new Date().toISOString(),
      })
      const presence = await createPresence({
        path: join(directory, `presence-${++count}.json`),
        heartbeatInterval: 30,
        version: '0.1.0',
        warnAfter: undefined,
        hints,
        clock,
        log,
      })
      return {
        parts: { ...server, serverRuns, keys, presence },
        async end() {
          serverRuns.close()
          await presence.close()
          await server.close()
          hints.close()
          await channel.close()
        },
      }
    },
    async forward(time, whose) {
      if (whose === 'all') await shared.forward(time)
      else for (const machine of machines) machine.forward(time / 1000)
    },
  }
}

enginesContract(test, make)
silentEnginesContract(test, make)
