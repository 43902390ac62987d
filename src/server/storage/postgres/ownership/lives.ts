import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../../../core/errors.ts'
import { lease, type Member } from '../../ports/cluster.ts'
import type { Ask } from '../connection/database.ts'

/** First key of the advisory locks that prove that servers live; the second one is the epoch of the life. */
const lifeLocks = 7_263_002

/** The second key has 31 bits. */
const lockKey = ({ epoch }: Pick<Member, 'epoch'>): number => epoch % 2 ** 31

/** Second keys of the held locks of this store. */
const standing = `select k.objid::bigint as key from pg_locks k
  where k.locktype = 'advisory' and k.granted and k.objsubid = 2 and k.classid = ${lifeLocks}
    and k.database = (select oid from pg_database where datname = current_database())`

/** SQL: whether the session of a life holds its lock; `row` is of rsm.servers. */
export const isLocked = (row: string): string => `${row}.epoch % 2147483648 in (${standing})`

/** SQL: whether the server in these columns of `row` lives. */
export const isLiving = (row: string, { name = 'server', epoch = 'epoch' } = {}): string => `exists (
  select from rsm.servers living where living.name = ${row}.${name} and living.epoch = ${row}.${epoch}
    and living.lease_until > (select rsm.now()))`

/** SQL: a parameter in milliseconds as an interval. */
export const milliseconds = (parameter: string): string => `${parameter}::float8 * interval '1 ms'`

/**
 * Milliseconds after a restart of PostgreSQL in which missing locks are ignored. The restart releases all
 * locks, and servers need time to take theirs again.
 */
export const settleTime = 5_000
/** Milliseconds that a process has to end after its successor started. */
const patience = 1_000
const pollInterval = 100
const maxAttempts = 20

interface PreviousLife {
  epoch: number
  address: string | null
  /** Milliseconds; negative if the lease has expired. */
  lease_left: number
  is_locked: boolean
}

/** Takes a name that is free, or whose server is dead: its lease expired, or its lock was released. */
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

/** Removes servers that have been dead for a day. */
const forget = `delete from rsm.servers where lease_until < rsm.now() - interval '1 day'`

/** Removes dead owners of tasks that do not run: they died just before a task was created, or just after its end. */
const forgetOwners = `delete from rsm.task_owners o where not ${isLiving('o')}
  and not exists (select from rsm.tasks t where t.id = o.task_id and t.status = 'RUNNING')`

/** Takes the lock of the life; false if another session holds it. */
export async function lockLife(ask: Ask, member: Pick<Member, 'epoch'>): Promise<boolean> {
  const [row] = await ask<{ is_locked: boolean }>('select pg_try_advisory_lock($1, $2) as is_locked', [
    lifeLocks,
    lockKey(member),
  ])
  return row?.is_locked === true
}

/** Retakes the lock after a reconnect; terminates the previous session, whose end PostgreSQL may not have noticed. */
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
 * Begins a life under a name. The session of `ask` holds its lock before other servers see it.
 * @throws RsmError `conflict` if another live process has the name
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
  // Without its lock it is dead, or PostgreSQL has just started: later attempts decide.
  if (lease_left <= 0 || !is_locked || waited < patience) return
  const where = address === null ? '' : ` at ${address}`
  throw new RsmError('conflict', `A server named ${name} is running on this store${where}`, {
    hint: 'give this one another name with --server-name, or stop that one',
  })
}
