import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../../../core/errors.ts'
import type { Log } from '../../../../disk/log.ts'
import type { StoreSnapshot } from '../../backup/backup.ts'
import { lease } from '../../ports/cluster.ts'
import type { OnDamage } from '../../streams.ts'
import { displayAddress, refusedStore, type StoreAddress } from '../connection/address.ts'
import { type Ask, askOf, createDatabase, type Database } from '../connection/database.ts'
import { isAway, unavailable } from '../connection/failure.ts'
import { refusePooler } from '../connection/session.ts'
import { isLocked } from '../ownership/lives.ts'
import { knownSchema, migrate } from '../schema/migrations.ts'
import { closedOf, closeStore, lockForMove, refuseNoted } from './closed.ts'
import { readPostgres } from './reader.ts'

/** A store that a migration locks while its connection lasts. */
export interface MovingStore {
  readonly database: Database
  /** Uses the connection with the lock; statements have no timeout. */
  readonly ask: Ask
  close(): Promise<void>
}

/** Milliseconds between checks of servers whose sessions have ended. */
const pause = 500

async function openAsk(
  database: Database,
): Promise<{ database: Database; ask: Ask; release(): Promise<void> }> {
  const client = await database.connect(true)
  const plain = askOf(client)
  return {
    database,
    ask: (...asked) =>
      plain<never>(...asked).catch((error: unknown) => {
        throw isAway(error) ? unavailable(error) : error
      }),
    release: () => client.end(),
  }
}

async function connect(address: StoreAddress, log: Log): Promise<MovingStore> {
  const database = createDatabase(address, 'migrate', log)
  try {
    await refusePooler(database)
    const opened = await openAsk(database)
    return {
      database,
      ask: opened.ask,
      async close() {
        await opened.release()
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

/** Waits for the leases of killed servers to expire. Errors: `conflict` if a server lives. */
async function refuseLiving({ ask, database }: MovingStore): Promise<void> {
  for (let waited = 0; ; waited += pause) {
    const servers = await ask<{ name: string; address: string | null; is_locked: boolean }>(
      `select s.name, s.address, ${isLocked('s')} as is_locked from rsm.servers s where s.lease_until > rsm.now() order by name`,
    )
    const living = servers.find(({ is_locked }) => is_locked || waited > lease)
    if (living) {
      const where = living.address === null ? '' : ` at ${living.address}`
      throw new RsmError(
        'conflict',
        `server ${living.name}${where} is running on ${displayAddress(database.address)}`,
        { hint: 'stop all servers of the store first' },
      )
    }
    if (servers.length === 0) return
    await delay(pause)
  }
}

async function hasSchema({ ask }: Pick<MovingStore, 'ask'>): Promise<boolean> {
  const [row] = await ask<{ is_there: boolean }>(`select to_regclass('rsm.cluster') is not null as is_there`)
  return row?.is_there === true
}

const storeIdOf = async ({ ask }: Pick<MovingStore, 'ask'>): Promise<string | null> =>
  (await ask<{ store_id: string | null }>('select store_id from rsm.cluster'))[0]?.store_id ?? null

/** Removes the rest of an aborted migration. Errors: `conflict` if there is anything else. */
async function refuseFilled(store: MovingStore): Promise<void> {
  if (!(await hasSchema(store))) return
  const { ask, database } = store
  const closed = await closedOf(ask)
  if (closed?.is_partial === true) {
    await ask('drop schema rsm cascade')
    return
  }
  await refuseLiving(store)
  const storeId = await storeIdOf(store)
  if (storeId === null) return
  const [found] = await ask<{ hosts: number; users: number; tasks: number }>(
    `select (select count(*) from rsm.hosts) as hosts, (select count(*) from rsm.users) as users,
      (select count(*) from rsm.tasks) as tasks`,
  )
  const { hosts = 0, users = 0, tasks = 0 } = found ?? {}
  throw new RsmError(
    'conflict',
    `${displayAddress(database.address)} is not empty: it has the store ${storeId} with ${hosts} hosts, ${users} users and ${tasks} tasks`,
    { hint: 'use an empty database; to delete this store: drop schema rsm cascade' },
  )
}

async function opened(
  address: StoreAddress,
  log: Log,
  check: (store: MovingStore) => Promise<void>,
): Promise<MovingStore> {
  const store = await connect(address, log)
  try {
    await lockForMove(store.ask)
    await check(store)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/**
 * Opens an empty store, on which no server starts before `openStore`; `from`: the store to move there. Writes
 * are not flushed to disk one by one; the last statement does that. Errors: `conflict` if it is in use or not
 * empty, `unavailable` as for a server.
 */
export const openTarget = (address: StoreAddress, from: string, log: Log): Promise<MovingStore> =>
  opened(address, log, async (store) => {
    await refuseFilled(store)
    await migrate(store.database)
    await closeStore(store.ask, `the migration of ${from} to this store is incomplete`, true)
    await store.ask('set synchronous_commit = off')
  })

/** Returns the id of the store. Errors: `unavailable` if there is no complete store of this version. */
async function refuseUnknown(store: Pick<MovingStore, 'ask' | 'database'>): Promise<string> {
  const { ask, database } = store
  const refuse = (message: string, hint: string) => {
    throw refusedStore(database.address, message, hint)
  }
  const storeId = (await hasSchema(store)) ? await storeIdOf(store) : null
  if (storeId === null)
    return refuse('no rsm store found', 'use the database that the servers have as --store')
  await refuseNoted(ask, database.address)
  const [found] = await ask<{ schema: number }>('select schema from rsm.cluster')
  if (found?.schema !== knownSchema())
    refuse(
      `its schema is number ${found?.schema}, and this rsm reads number ${knownSchema()}`,
      'use the rsm version of its servers',
    )
  return storeId
}

/** Opens a store on which no server lives or starts. Errors: as of `openTarget`. */
export async function openSource(
  address: StoreAddress,
  log: Log,
): Promise<MovingStore & { storeId: string }> {
  let storeId = ''
  const store = await opened(address, log, async (store) => {
    storeId = await refuseUnknown(store)
    await refuseLiving(store)
    const [cancel] = await store.ask('select from rsm.cancels limit 1')
    if (cancel)
      throw refusedStore(
        address,
        'a server stopped in the middle of a cancel',
        'start a server once: it finishes the cancel in 15 s; then stop it',
      )
  })
  return { ...store, storeId }
}

/** Opens a snapshot of a store whose servers keep running. `damaged`: as in `readPostgres`. */
export async function openPostgresSnapshot(database: Database, damaged: OnDamage): Promise<StoreSnapshot> {
  const store = await openAsk(database)
  const { ask } = store
  const release = () => store.release()
  try {
    // A reader of the backup may be slow; the transaction locks no more than pg_dump does.
    await ask('set idle_in_transaction_session_timeout = 0')
    await ask('begin isolation level repeatable read read only')
    const storeId = await refuseUnknown(store)
    const [run] = await ask<{ sequence: number }>(
      `select coalesce(max(greatest(progress, (rec->>'last')::bigint)), 0) as sequence from rsm.runs`,
    )
    const snapshot: Database = { ...database, ask: (_, ...asked) => ask(...asked) }
    return { storeId, sequence: run?.sequence ?? 0, reader: readPostgres(snapshot, damaged), release }
  } catch (error) {
    await release()
    throw error
  }
}
