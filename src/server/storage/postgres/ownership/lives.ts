import type { Member } from '../../ports/cluster.ts'

/** First key of the advisory locks by which servers show that they live; the second one is the epoch of the life. */
export const lifeLocks = 7_263_002

/** The second key has 31 bits. */
export const lockKey = ({ epoch }: Pick<Member, 'epoch'>): number => epoch % 2 ** 31

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
