import { pieceBytes } from './append.ts'

/** A read stops at about so many bytes, so that no reader makes the server hold more. */
export const readBudget = 256 * 1024
/** One statement looks at so many entries: one host's few among a million others' take several short ones. */
const entriesAtOnce = 65_536

// $1: the task, $2: the cursor, $3: of this host or null, $4: whether of stderr, or null.
const selected = 'and ($3::bigint is null or host_id = $3) and ($4::bool is null or is_stderr = $4)'

/** Of what is wanted, $5 at most and in this order, that which fits into the budget. */
const bounded = (
  wanted: string,
  order: string,
) => `select id, host_id, is_stderr, sequence, at, phase, data from (
      select w.*, sum(octet_length(data) + ${pieceBytes}) over (order by ${order}) - octet_length(data) - ${pieceBytes} as before
      from (${wanted} order by ${order} limit $5) w) b
    where before < ${readBudget}`

/** The id with which the part ends that one statement looks at. */
const edge = (table: string, side: string, order: string) =>
  `select id from ${table} where task_id = $1 and ${side} order by ${order} offset ${entriesAtOnce - 1} limit 1`

/** `last`: the end of the log; `until`: that of what was looked at. No row where the task has no output, one at least where it has. */
export const forwards = (table: string, isFiltered: boolean): string => {
  const until = isFiltered ? `coalesce((${edge(table, 'id > $2', 'id')}), h.last)` : 'h.last'
  const filter = isFiltered ? selected : 'and $3::bigint is null and $4::bool is null'
  const wanted = `select * from ${table} where task_id = $1 and id > $2 and id <= p.until ${filter}`
  return `select h.last, p.until, e.* from rsm.output_heads h cross join lateral (select ${until} as until) p
    left join lateral (${bounded(wanted, 'id')}) e on true
    where h.task_id = $1 order by e.id`
}

/** `first`: the first id of the log; `low`: that of what was looked at; `high`: its last one. Rows as of `forwards`. */
export const backwards = (table: string): string => {
  const wanted = `select * from ${table} where task_id = $1 and id >= p.low and id < $2 ${selected}`
  return `select p.first, p.low, p.high, e.* from rsm.output_heads h cross join lateral (select
      coalesce((select min(id) from ${table} where task_id = $1), 0) as first,
      coalesce((${edge(table, 'id < $2', 'id desc')}), 0) as low,
      coalesce((select max(id) from ${table} where task_id = $1 and id < $2), 0) as high) p
    left join lateral (${bounded(wanted, 'id desc')}) e on true
    where h.task_id = $1 order by e.id`
}

/** The id of the wanted entry that is $5 before the last one below the cursor; null where there are only `found`. */
export const countingBack = (table: string): string => {
  const wanted = `from ${table} where task_id = $1 and id >= p.low and id < $2 ${selected}`
  return `select p.low, (select id ${wanted} order by id desc offset $5 limit 1) as at, (select count(*) ${wanted}) as found
    from rsm.output_heads h
    cross join lateral (select coalesce((${edge(table, 'id < $2', 'id desc')}), 0) as low) p
    where h.task_id = $1`
}

export const lastId = 'select last from rsm.output_heads where task_id = $1'

export const progress = (
  table: string,
): string => `select host_id, max(sequence) as sequence, count(*) as frames,
    coalesce(sum(bytes) filter (where not is_stderr), 0) as stdout, coalesce(sum(bytes) filter (where is_stderr), 0) as stderr
  from ${table} where task_id = $1 group by host_id`
