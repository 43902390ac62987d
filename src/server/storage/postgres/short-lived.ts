import type { Rate, ShortLived, ShortLivedKind } from '../ports/short-lived.ts'
import type { Database } from './connection/database.ts'
import { milliseconds } from './ownership/lives.ts'

/** Maximum keys per kind, because attackers can create keys by guessing. */
const mostKept = 10_000
/** Excess and expired rows are removed after this many writes, or this many milliseconds, whichever comes first. */
const trimAfter = 500
const trimEvery = 10_000
/** Maximum rows checked for expiry per trim. */
const mostOver = 1_000

/** SQL: unexpired entries of `ends` of row `k`, ascending. */
const live = `array(select ending from unnest(k.ends) ending where ending > (select rsm.now()) order by ending)`

const put = {
  name: 'short-lived.put',
  text: `insert into rsm.short_lived (kind, key, value, ends) values ($1, $2, $3, array[rsm.now() + ${milliseconds('$4')}])
    on conflict (kind, key) do update set value = excluded.value, ends = excluded.ends, turn = excluded.turn`,
}

const take = {
  name: 'short-lived.take',
  text: `delete from rsm.short_lived k where kind = $1 and key = $2 returning value, cardinality(${live}) > 0 as is_kept`,
}

/** Returns one row if it counted. */
const count = {
  name: 'short-lived.count',
  text: `insert into rsm.short_lived as k (kind, key, ends) values ($1, $2, array[rsm.now() + ${milliseconds('$3')}])
    on conflict (kind, key) do update set value = null, turn = excluded.turn, ends = ${live} || case
      when $5 and k.ends[cardinality(k.ends)] > rsm.now() then k.ends[cardinality(k.ends)] + ${milliseconds('$3')}
      else excluded.ends[1] end
    where cardinality(${live}) < $4
    returning key`,
}

const wait = {
  name: 'short-lived.wait',
  text: `select (extract(epoch from its.ends[cardinality(its.ends) - $3 + 1] - rsm.now()) * 1000)::float8 as time
    from (select ${live} as ends from rsm.short_lived k where kind = $1 and key = $2) its where cardinality(its.ends) >= $3`,
}

const forget = {
  name: 'short-lived.forget',
  text: 'delete from rsm.short_lived where kind = $1 and key = $2',
}

const trim = {
  name: 'short-lived.trim',
  text: `delete from rsm.short_lived where (kind, key) in (
      select kind, key from rsm.short_lived where kind = $1 and turn <= (
        select turn from rsm.short_lived where kind = $1 order by turn desc offset $2 limit 1)
      order by turn for update skip locked)
    or (kind, key) in (
      select kind, key from (select * from rsm.short_lived where kind = $1 order by turn limit $3) oldest
      where ends[cardinality(ends)] <= (select rsm.now()))`,
}

/** Rows of an unlogged table, by the store's time, so that all servers count together. */
export function createShortLived(database: Database): ShortLived {
  const kept = new Map<ShortLivedKind, { count: number; since: number }>()

  async function trimIfDue(kind: ShortLivedKind): Promise<void> {
    const its = kept.get(kind) ?? { count: 0, since: Number.NEGATIVE_INFINITY }
    const now = performance.now()
    kept.set(kind, { ...its, count: its.count + 1 })
    if (its.count < trimAfter && now - its.since < trimEvery) return
    kept.set(kind, { count: 0, since: now })
    await database.ask('api', trim, [kind, mostKept, mostOver])
  }

  /** Milliseconds to wait; 0 if below the limit. */
  async function waitOf(kind: ShortLivedKind, key: string, { most }: Rate): Promise<number> {
    const [row] = await database.ask<{ time: number }>('api', wait, [kind, key, most])
    return Math.max(0, row?.time ?? 0)
  }

  return {
    async put(kind, key, value, life) {
      await database.ask('api', put, [kind, key, JSON.stringify(value), life])
      await trimIfDue(kind)
    },
    async take(kind, key) {
      const [row] = await database.ask<{ value: unknown; is_kept: boolean }>('api', take, [kind, key])
      return row?.is_kept === true ? (row.value ?? undefined) : undefined
    },
    async count(kind, key, rate) {
      const counted = await database.ask('api', count, [
        kind,
        key,
        rate.life,
        rate.most,
        rate.spaced === true,
      ])
      if (counted.length === 0) return Math.max(1, await waitOf(kind, key, rate))
      await trimIfDue(kind)
      return 0
    },
    wait: waitOf,
    async forget(kind, key) {
      await database.ask('api', forget, [kind, key])
    },
  }
}
