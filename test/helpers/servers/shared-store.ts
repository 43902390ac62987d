import { createLog } from '../../../src/disk/log.ts'
import { createStoreClock, type StoreClock } from '../../../src/server/storage/postgres/clock.ts'
import { createDatabase, type Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { ShiftedClock } from '../faults/shifted-clock.ts'
import { patientAddress } from './patient-address.ts'
import type { SharedPostgres } from './postgres.ts'

/** Logs errors only: tests would fill the output with warnings. */
const quiet = createLog('ERROR')

/** Parts that each server of a shared store has of its own. */
export interface SharingServer {
  database: Database
  clock: StoreClock
  /** The clock of its machine. */
  system: ShiftedClock
  log: typeof quiet
}

/** A store with the schema and servers on it; a test moves its time forward. */
export interface SharedStore {
  url: string
  /** A connection that no server uses. */
  ask: Database['ask']
  /** Moves all time forward by milliseconds: that of the store and of the servers' machines. */
  forward(time: number): Promise<void>
  /** `through`: the URL of a proxy in front of PostgreSQL. */
  server(name: string, through?: string): Promise<SharingServer>
}

export async function sharedStore(
  postgres: SharedPostgres,
  teardown: (end: () => Promise<void>) => void,
): Promise<SharedStore> {
  const url = await postgres.database()
  const open = (name: string, at: string) => createDatabase(patientAddress(at), name, quiet)
  const own = open('test', url)
  teardown(() => own.close())
  await own.ask('api', 'create table rsm.test_shift as select 0::float8 as by')
  await own.ask(
    'api',
    `create or replace function rsm.now() returns timestamptz language sql volatile as
      $$ select clock_timestamp() + (select by from rsm.test_shift) * interval '1 ms' $$`,
  )
  const machines: ShiftedClock[] = []
  return {
    url,
    ask: (pool, statement, values) => own.ask(pool, statement, values),
    async forward(time) {
      for (const machine of machines) machine.forward(time / 1000)
      await own.ask('api', 'update rsm.test_shift set by = by + $1::float8', [time])
    },
    async server(name, through) {
      const at = new URL(url)
      if (through !== undefined) at.port = new URL(through).port
      const database = open(name, at.href)
      teardown(() => database.close())
      const system = new ShiftedClock()
      machines.push(system)
      return { database, system, clock: await createStoreClock(database, system), log: quiet }
    },
  }
}
