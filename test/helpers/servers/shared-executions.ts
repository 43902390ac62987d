import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Links, Ownership } from '../../../src/server/storage/ports/cluster.ts'
import type { Executions } from '../../../src/server/storage/ports/executions.ts'
import type { Hints } from '../../../src/server/storage/ports/hints.ts'
import type { Results } from '../../../src/server/storage/ports/outputs.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { openPostgresExecutions } from '../../../src/server/storage/postgres/executions/executions.ts'
import { createLinks } from '../../../src/server/storage/postgres/links.ts'
import {
  createPostgresOutputs,
  type PostgresOutputs,
} from '../../../src/server/storage/postgres/outputs/outputs.ts'
import { openOwnership } from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { createPostgresResults } from '../../../src/server/storage/postgres/results.ts'
import { openPostgresStore, type PostgresStore } from '../../../src/server/storage/postgres/store/store.ts'
import type { SharedStore, SharingServer } from './shared-store.ts'

/** A server of a shared store, reduced to running tasks. */
export interface ExecutingServer extends SharingServer {
  executions: Executions
  store: PostgresStore
  outputs: PostgresOutputs
  results: Results
  links: Links
  ownership: Ownership
  hints: Hints
  /** Ends it as a stop does. */
  close(): Promise<void>
}

/**
 * `hints`: by default those of this server alone, so that all hints between servers are lost. `seen`: wraps its access to
 * PostgreSQL.
 */
export async function executingServer(
  shared: Pick<SharedStore, 'server'>,
  name: string,
  hints: Hints = createLocalHints(),
  seen = (database: Database): Database => database,
): Promise<ExecutingServer> {
  const own = await shared.server(name)
  const parts = { ...own, database: seen(own.database) }
  const { database, log } = parts
  const store = await openPostgresStore({ database, log })
  const ownership = await openOwnership({ ...parts, hints, version: '0.1.0' })
  const links = createLinks({ ...parts, ownership, hints })
  const outputs = createPostgresOutputs(database, hints)
  const results = createPostgresResults(database, outputs)
  const executions = await openPostgresExecutions({ ...parts, store, outputs, hints })
  let closing: Promise<void> | undefined
  return {
    ...parts,
    executions,
    store,
    outputs,
    results,
    links,
    ownership,
    hints,
    close: () =>
      (closing ??= (async () => {
        await executions.close()
        links.close()
        await ownership.close()
        await store.close()
      })()),
  }
}
