import { RsmError } from '../../../../core/errors.ts'
import { refusedStore, type StoreAddress } from '../connection/address.ts'
import type { Ask } from '../connection/database.ts'

/** Any number that nothing else in this database locks: `rsm server migrate` holds it while it reads or fills the store. */
const movingLock = 7_263_006

/** Why no server may start on a store, from a migration that has ended or was cut off. */
interface Closed {
  readonly why: string
  /** The store is not whole: a new migration begins anew. */
  readonly is_partial: boolean
}

/** Null where servers may start. */
export async function closedOf(ask: Ask): Promise<Closed | null> {
  const [table] = await ask<{ is_there: boolean }>(`select to_regclass('rsm.closed') is not null as is_there`)
  if (table?.is_there !== true) return null
  const [closed] = await ask<Closed>('select why, is_partial from rsm.closed')
  return closed ?? null
}

/** No server starts from here on. */
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
 * What a migration has left of a store that is closed.
 * @throws RsmError `unavailable`
 */
export async function refuseNoted(ask: Ask, address: StoreAddress): Promise<void> {
  const closed = await closedOf(ask)
  if (closed === null) return
  const { why, is_partial } = closed
  const hint = is_partial
    ? 'run that rsm server migrate again: it starts over; or start a server with the directory, which is as it was'
    : 'start a server with that directory; to go back to this store as it was when it moved: drop table rsm.closed'
  throw refusedStore(address, why, hint)
}

/**
 * Before a server joins, and again when others see it: whoever migrates looks for servers when it has the lock.
 * @throws RsmError `unavailable` while a migration is under way, after one that was cut off, and in a store that has moved away
 */
export async function refuseClosed(ask: Ask, address: StoreAddress): Promise<void> {
  const [lock] = await ask<{ is_free: boolean }>('select pg_try_advisory_xact_lock_shared($1) as is_free', [
    movingLock,
  ])
  if (lock?.is_free !== true)
    throw refusedStore(
      address,
      'rsm server migrate is moving this store',
      'start the server when that has ended',
    )
  await refuseNoted(ask, address)
}

/** Errors: `conflict` where another migration has it. */
export async function lockForMove(ask: Ask): Promise<void> {
  const [lock] = await ask<{ is_ours: boolean }>('select pg_try_advisory_lock($1) as is_ours', [movingLock])
  if (lock?.is_ours === true) return
  throw new RsmError('conflict', 'another rsm server migrate is at work on this store', {
    hint: 'wait until it has ended; one that was killed ends with its connection',
  })
}
