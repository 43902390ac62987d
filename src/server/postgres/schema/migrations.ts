import { RsmError } from '../../../core/errors.ts'
import { refusedStore, type StoreAddress, shownAddress } from '../connection/address.ts'
import type { Database } from '../connection/database.ts'
import { isAway, unavailable } from '../connection/failure.ts'
import { eighth } from './eighth.ts'
import { fifth } from './fifth.ts'
import { first } from './first/first.ts'
import { fourth } from './fourth.ts'
import { second } from './second.ts'
import { seventh } from './seventh.ts'
import { sixth } from './sixth.ts'
import { third } from './third.ts'

/**
 * A change of the schema. It only adds, as servers of the version before run beside it; what they no longer need is removed one version
 * later (`oldestServer`: the first schema whose servers can still work with it).
 */
interface Migration {
  readonly number: number
  readonly oldestServer: number
  readonly statements: readonly string[]
}

const migrations: readonly Migration[] = [
  { number: 1, oldestServer: 1, statements: first },
  { number: 2, oldestServer: 1, statements: second },
  { number: 3, oldestServer: 1, statements: third },
  { number: 4, oldestServer: 1, statements: fourth },
  { number: 5, oldestServer: 1, statements: fifth },
  { number: 6, oldestServer: 1, statements: sixth },
  { number: 7, oldestServer: 1, statements: seventh },
  { number: 8, oldestServer: 1, statements: eighth },
]

/** What this build knows. */
export const knownSchema = migrations.length

/** Any number that nothing else in this database locks. */
export const migrationLock = 7_263_001

/** A row of rsm.cluster: servers of each version read these columns. */
export interface Present {
  schema: number
  oldest_server: number
}

/** @throws RsmError `conflict` where a newer rsm has removed from the schema what this build needs */
export function refuseNewer(address: StoreAddress, { schema, oldest_server }: Present): void {
  if (oldest_server <= knownSchema) return
  throw new RsmError(
    'conflict',
    `${shownAddress(address)}: its schema is number ${schema}, of a newer rsm; this one knows ${knownSchema}`,
    { hint: 'start the newer rsm, or restore the backup from before the upgrade' },
  )
}

/**
 * Brings the schema up to what this build knows, all of it or nothing; servers that start at once do it one after the other.
 * @throws RsmError as of `refuseNewer`; `unavailable` where PostgreSQL refuses a change
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
