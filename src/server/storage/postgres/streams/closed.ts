import { RsmError } from '../../../../core/errors.ts'
import { refusedStore, type StoreAddress } from '../connection/address.ts'
import type { Ask } from '../connection/database.ts'

/** Advisory lock, unique in this database, of `rsm server migrate` while it reads or fills the store. */
const movingLock = 7_263_006

/** Why no server may start on a store after a finished or aborted migration. */
interface Closed {
  readonly why: string
  /** The store is incomplete: a new migration starts over. */
  readonly is_partial: boolean
}

/** Null if servers may start. */
export async function closedOf(ask: Ask): Promise<Closed | null> {
  const [table] = await ask<{ is_there: boolean }>(`select to_regclass('rsm.closed') is not null as is_there`)
  if (table?.is_there !== true) return null
  const [closed] = await ask<Closed>('select why, is_partial from rsm.closed')
  return closed ?? null
}

/** Prevents servers from starting on the store. */
export async function closeStore(ask: Ask, why: string, isPartial: boolean): Promise<void> {
  await ask(
    'create table if not exists rsm.closed(only_one bool primary key default true check (only_one), why text not null, is_partial bool not null)',
  )
  await ask(
    `insert into rsm.closed(why, is_partial) values ($1, $2)
    on conflict (only_one) do update set why = excluded.why, is_partial = excluded.is_partial`,
    [why, isPartial],
  )
}

export async function openStore(ask: Ask): Promise<void> {
  await ask('drop table rsm.closed')
}

/**
 * Refuses a store that a migration has closed.
 * @throws RsmError `unavailable`
 */
export async function refuseNoted(ask: Ask, address: StoreAddress): Promise<void> {
  const closed = await closedOf(ask)
  if (closed === null) return
  const { why, is_partial } = closed
  const hint = is_partial
    ? 'run the same rsm server migrate again: it starts over; or start a server with the directory, which is unchanged'
    : 'start a server with that directory; to return to this store as of the move: drop table rsm.closed'
  throw refusedStore(address, why, hint)
}

/**
 * Called before a server joins, and again once others see it, because a migration checks for servers after it took the lock.
 * @throws RsmError `unavailable` during a migration, after an aborted one, and for a store that has moved away
 */
export async function refuseClosed(ask: Ask, address: StoreAddress): Promise<void> {
  const [lock] = await ask<{ is_free: boolean }>('select pg_try_advisory_xact_lock_shared($1) as is_free', [
    movingLock,
  ])
  if (lock?.is_free !== true)
    throw refusedStore(
      address,
      'rsm server migrate is moving this store',
      'start the server when it has finished',
    )
  await refuseNoted(ask, address)
}

/** Errors: `conflict` if another migration has the lock. */
export async function lockForMove(ask: Ask): Promise<void> {
  const [lock] = await ask<{ is_ours: boolean }>('select pg_try_advisory_lock($1) as is_ours', [movingLock])
  if (lock?.is_ours === true) return
  throw new RsmError('conflict', 'another rsm server migrate is running on this store', {
    hint: 'wait until it has finished; a killed one ends with its connection',
  })
}
