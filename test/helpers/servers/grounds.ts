import { join } from 'node:path'
import { systemClock as clock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import { openExecutions } from '../../../src/server/storage/files/executions/executions.ts'
import { createFileOutputs } from '../../../src/server/storage/files/outputs/file-outputs.ts'
import { createFileResults } from '../../../src/server/storage/files/results.ts'
import { beginRun } from '../../../src/server/storage/files/runs.ts'
import { createScriptVersions } from '../../../src/server/storage/files/script-versions.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Data } from '../../../src/server/storage/ports/data.ts'
import type { Store } from '../../../src/server/storage/ports/store.ts'
import { beginRun as beginSharedRun } from '../../../src/server/storage/postgres/runs.ts'
import { createScriptVersions as createSharedVersions } from '../../../src/server/storage/postgres/script-versions.ts'
import type { SharedPostgres } from './postgres.ts'
import { executingServer } from './shared-executions.ts'
import { sharedStore } from './shared-store.ts'

/** Ports that services need, apart from those that each server has of its own. */
export interface Ground
  extends Pick<
    Data,
    | 'store'
    | 'serverRuns'
    | 'hints'
    | 'links'
    | 'ownership'
    | 'executions'
    | 'outputs'
    | 'results'
    | 'versions'
  > {
  close(): Promise<void>
}

/** `directory`: for its files; `seen`: wraps the store for everything that uses it. */
export type OpenGround = (directory: string, seen: (store: Store) => Store) => Promise<Ground>

const onFatal = (error: unknown) => {
  throw error
}

export const fileGround: OpenGround = async (directory, seen) => {
  const log = createLog('ERROR')
  const disk = await openJsonStore({ directory: join(directory, 'store'), log: () => undefined, onFatal })
  const store = seen(disk)
  const hints = createLocalHints()
  const tasks = join(directory, 'tasks')
  const outputs = createFileOutputs(tasks, hints, onFatal)
  const results = createFileResults(tasks)
  const { ownership, links } = createCluster(clock)
  const executions = await openExecutions({ store, outputs, results, hints, links, ownership, clock, log })
  return {
    store,
    serverRuns: await beginRun(disk, clock),
    hints,
    links,
    ownership,
    executions,
    outputs,
    results,
    versions: createScriptVersions(join(directory, 'scripts')),
    async close() {
      await executions.close()
      await outputs.close()
      await disk.close()
    },
  }
}

/** Each one in a database of its own. */
export const postgresGround =
  (postgres: Promise<SharedPostgres>): OpenGround =>
  async (_, seen) => {
    const ends: (() => Promise<void>)[] = []
    const shared = await sharedStore(await postgres, (end) => void ends.push(end))
    const server = await executingServer(shared, 'server')
    const runs = await beginSharedRun({ ...server, onFatal })
    return {
      ...server,
      store: seen(server.store),
      serverRuns: runs,
      versions: createSharedVersions(server.database),
      async close() {
        runs.close()
        await server.close()
        for (const end of ends.toReversed()) await end()
      },
    }
  }
