import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Store, Transaction } from '../../ports/store.ts'
import type { Ask, Database } from '../connection/database.ts'
import type { PostgresOutputs } from '../outputs/outputs.ts'

export interface ExecutionsDependencies {
  database: Database
  store: Pick<Store, 'get'> & {
    /** As `transact`, with statements of other ports in the same transaction. */
    transactAsk<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
    /** The same, where all that is decided on is locked. */
    transactLocked<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  }
  outputs: Pick<PostgresOutputs, 'appendGuarded'>
  hints: Hints
  clock: Clock
  log: Log
}
