import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../../../core/errors.ts'
import { lease, type Member } from '../../ports/cluster.ts'
import type { Ask } from '../connection/database.ts'

/** First key of the advisory locks by which servers show that they live; the second one is the epoch of the life. */
const lifeLocks = 7_263_002

/** The second key has 31 bits. */
const lockKey = ({ epoch }: Pick<Member, 'epoch'>): number => epoch % 2 ** 31

/** Second keys of the locks that stand, of this store. */
const standing = `select k.objid::bigint as key from pg_locks k
  where k.locktype = 'advisory' and k.granted and k.objsubid = 2 and k.classid = ${lifeLocks}
    and k.database = (select oid from pg_database where datname = current_database())`

/** Whether the session of a life stands, where `row` is one of rsm.servers. */
export const isLocked = (row: string): string => `${row}.epoch % 2147483648 in (${standing})`

/** Whether the server lives that `row` names in these columns. */
export const isLiving = (row: string, { name = 'server', epoch = 'epoch' } = {}): string => `exists (
  select from rsm.servers living where living.name = ${row}.${name} and living.epoch = ${row}.${epoch}
    and living.lease_until > (select rsm.now()))`

/** As an interval of SQL, where `parameter` is in milliseconds. */
export const milliseconds = (parameter: string): string => `${parameter}::float8 * interval '1 ms'`

/**
 * Milliseconds. All locks fall when PostgreSQL starts anew, and servers need a moment to take theirs again: until then a
 * lock that is missing says nothing.
 */
export const settleTime = 5_000
/** Milliseconds that a process may take to end after its successor has started. */
const patience = 1_000
const pollInterval = 100
const maxAttempts = 20

interface PreviousLife {
  epoch: number
  address: string | null
  /** Milliseconds; negative where it is over. */
  lease_left: number
  is_locked: boolean
}

/** Takes a name that is free, or whose server has died: its lease is over, or its lock has fallen. */
const take = `insert into rsm.servers as s (name, epoch, lease_until, joined_at, version, address)
  values ($1, $2, rsm.now() + ${milliseconds('$3')}, rsm.now(), $4, $5)
  on conflict (name) do update set epoch = excluded.epoch, lease_until = excluded.lease_until,
    joined_at = excluded.joined_at, version = excluded.version, address = excluded.address, endpoint = null
  where s.epoch < excluded.epoch and (s.lease_until <= rsm.now() or (not ${isLocked('s')}
    and clock_timestamp() - pg_postmaster_start_time() > ${milliseconds('$6')}))
  returning epoch`

const findPrevious = `select s.epoch, s.address, ${isLocked('s')} as is_locked,
    (extract(epoch from s.lease_until - rsm.now()) * 1000)::float8 as lease_left
  from rsm.servers s where s.name = $1`

/** What people are shown of a server of which nothing was heard for a day is gone. */
const forget = `delete from rsm.servers where lease_until < rsm.now() - interval '1 day'`

/** What servers owned that died right before a task was there, or right after its end: nobody takes it over. */
const forgetOwners = `delete from rsm.task_owners o where not ${isLiving('o')}
  and not exists (select from rsm.tasks t where t.id = o.task_id and t.status = 'RUNNING')`

/** Whether this session holds the lock of the life, by which all others see that it lives. */
export async function lockLife(ask: Ask, member: Pick<Member, 'epoch'>): Promise<boolean> {
  const [row] = await ask<{ is_locked: boolean }>('select pg_try_advisory_lock($1, $2) as is_locked', [
    lifeLocks,
    lockKey(member),
  ])
  return row?.is_locked === true
}

/**
 * The same for a life whose former session may stand still in the eyes of PostgreSQL, as its end has not come through: it is
 * nobody else's.
 */
export async function lockLifeAgain(ask: Ask, member: Pick<Member, 'epoch'>): Promise<void> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    if (await lockLife(ask, member)) return
    await ask(
      `select pg_terminate_backend(k.pid) from pg_locks k where k.locktype = 'advisory' and k.objsubid = 2
        and k.classid = $1 and k.objid::bigint = $2 and k.pid <> pg_backend_pid()`,
      [lifeLocks, lockKey(member)],
    )
    await delay(pollInterval)
  }
}

export async function unlockLife(ask: Ask, member: Pick<Member, 'epoch'>): Promise<void> {
  await ask('select pg_advisory_unlock($1, $2)', [lifeLocks, lockKey(member)])
}

/**
 * Begins a life under a name, with its lock held by the session of `ask` before anybody sees it.
 * @throws RsmError `conflict` where another process lives under the name
 */
export async function takeName(
  ask: Ask,
  name: string,
  { version, address }: { version: string; address: string | null },
): Promise<Member> {
  await ask(forget)
  await ask(forgetOwners)
  for (let waited = 0; ; waited += pollInterval) {
    const [drawn] = await ask<{ epoch: number }>(`select nextval('rsm.epochs') as epoch`)
    const member = { name, epoch: drawn?.epoch ?? 0 }
    await lockLife(ask, member)
    const taken = await ask(take, [name, member.epoch, lease, version, address, settleTime])
    if (taken.length > 0) return member
    await unlockLife(ask, member)
    const [previous] = await ask<PreviousLife>(findPrevious, [name])
    if (previous) refuseLiving(name, previous, waited)
    await delay(pollInterval)
  }
}

function refuseLiving(name: string, previous: PreviousLife, waited: number): void {
  const { address, lease_left, is_locked } = previous
  // Without its lock it is dead, or PostgreSQL has just started: the next attempts tell.
  if (lease_left <= 0 || !is_locked || waited < patience) return
  const where = address === null ? '' : ` at ${address}`
  throw new RsmError('conflict', `A server named ${name} is running on this store${where}`, {
    hint: 'give this one another name with --server-name, or stop that one',
  })
}
