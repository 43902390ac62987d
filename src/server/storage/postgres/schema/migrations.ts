import { RsmError } from '../../../../core/errors.ts'
import { displayAddress, refusedStore, type StoreAddress } from '../connection/address.ts'
import type { Database } from '../connection/database.ts'
import { isAway, unavailable } from '../connection/failure.ts'
import { audit, files, metrics, recordings } from './contents.ts'
import { records } from './records.ts'
import { executions, outputs, servers } from './running.ts'

/**
 * A change of the schema. It only adds, because servers of the previous version keep running. Obsolete parts
 * are removed one version later. `oldestServer`: the first schema whose servers still work with it.
 */
interface Migration {
  readonly number: number
  readonly oldestServer: number
  readonly statements: readonly string[]
}

/** First schema of a release; lower numbers were never released. */
const first: Migration = {
  number: 9,
  oldestServer: 9,
  statements: [
    ...servers,
    ...executions,
    ...outputs,
    ...records,
    ...audit,
    ...metrics,
    ...recordings,
    ...files,
  ],
}

/** In ascending order. Tests add one. */
export const migrations: Migration[] = [first]

/** Number of the newest schema that this build knows. */
export const knownSchema = (): number => (migrations.at(-1) ?? first).number

/** Advisory lock, unique in this database. */
export const migrationLock = 7_263_001

/** Columns of rsm.cluster that servers of every version read. */
export interface Present {
  schema: number
  oldest_server: number
}

/** @throws RsmError `conflict` if a newer rsm has removed from the schema what this build needs */
export function refuseNewer(address: StoreAddress, { schema, oldest_server }: Present): void {
  if (oldest_server <= knownSchema()) return
  throw new RsmError(
    'conflict',
    `${displayAddress(address)}: its schema is number ${schema}, of a newer rsm; this one knows ${knownSchema()}`,
    { hint: 'start the newer rsm, or restore the backup from before the upgrade' },
  )
}

/** @throws RsmError `conflict` if the store is older than the first schema */
function refuseOlder(address: StoreAddress, { schema }: Present): void {
  if (schema === 0 || schema >= first.number) return
  throw new RsmError(
    'conflict',
    `${displayAddress(address)}: its schema is number ${schema}, of an older rsm; this one knows ${first.number} and newer`,
    { hint: 'move the store to a data directory with the rsm that made it: rsm server migrate' },
  )
}

/**
 * Applies missing migrations, all or none. Servers that start at once do so one after the other.
 * @throws RsmError as of `refuseNewer` and `refuseOlder`; `unavailable` if PostgreSQL refuses a change
 */
export async function migrate(database: Database): Promise<void> {
  const client = await database.connect(true)
  try {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    await client.query('create schema if not exists rsm')
    await client.query(
      'create table if not exists rsm.cluster(only_one bool primary key default true check (only_one), schema int not null, oldest_server int not null, store_id text)',
    )
    await client.query('insert into rsm.cluster(schema, oldest_server) values (0, 0) on conflict do nothing')
    const { rows } = await client.query<Present>('select schema, oldest_server from rsm.cluster')
    const present = rows[0] ?? { schema: 0, oldest_server: 0 }
    refuseNewer(database.address, present)
    refuseOlder(database.address, present)
    for (const { number, oldestServer, statements } of migrations) {
      if (number <= present.schema) continue
      for (const statement of statements)
        await client.query(statement).catch((error: unknown) => {
          throw isAway(error) ? unavailable(error) : failed(database, number, error)
        })
      await client.query('update rsm.cluster set schema = $1, oldest_server = $2', [number, oldestServer])
    }
    await client.query('commit')
  } finally {
    await client.end()
  }
}

const failed = ({ address }: Database, number: number, error: unknown): Error =>
  refusedStore(
    address,
    `PostgreSQL refuses migration ${number} of its schema: ${error instanceof Error ? error.message : String(error)}`,
    'nothing was changed, and servers of the previous version keep running; fix what PostgreSQL reports, then start this one again',
  )
