/** Settings of a function that reads rsm.executions by its indexes. */
const byIndex = 'set enable_seqscan = off set jit = off'

/** Offers or claims by host whose links are still the newest, locked until the commit. */
const linked = (hosts: string, fields: string) => `linked as materialized (
      select i.* from (
        select key::bigint as h, (value->>'e')::bigint as e, ${fields} from jsonb_each(${hosts}) order by 1) i
      cross join lateral (
        select from rsm.links l where l.host_id = i.h and l.epoch = i.e and l.server is not null for share) l)`

/**
 * Two parts:
 *
 * - Logged tables for the last known status of hosts, so that it survives a crash of PostgreSQL and the promotion of a standby.
 * - Functions that send executions (docs/inside/sent-once.md) at a cost per host that does not grow with the table. PostgreSQL may
 *   plan a plain statement while rsm.executions is empty, and keep that plan, which reads the whole table once per host. The
 *   functions forbid sequential scans, join from the hosts to their rows, and find the rows that they have locked by `ctid`.
 */
export const eighth: readonly string[] = [
  'alter table rsm.presence set logged',
  'alter table rsm.presence_heard set logged',
  // `attempt`: number of the take that sent it, counted by the server whose link has it; null after a take-over.
  'alter table rsm.executions add column attempt bigint',
  // `offers`, by host: e the epoch of the link, c its capacity, p what sending changes, d the ranges of attempts whose answers were lost.
  `create function rsm.executions_take(offers jsonb, this_attempt bigint) returns setof rsm.executions language plpgsql ${byIndex} as $$
  declare
    chosen tid[];
  begin
    chosen := array(
      with ${linked('offers', `(value->>'c')::int as c, (value->>'d')::int8multirange as d`)},
      stopped as materialized (select task_id from rsm.held union all select task_id from rsm.cancels),
      found as materialized (
        select x.* from linked i cross join lateral (
          select x.ctid as place, x.rev, x.task_id, x.host_id from rsm.executions x
          where x.host_id = i.h and x.status = 'PENDING' and x.due_at is not null and not x.over_ssh
            and x.task_id <> all (array(select task_id from stopped))
          order by x.due_at, x.task_id
          limit greatest(0, i.c - (select count(*) from rsm.executions r
            where r.host_id = i.h and r.status = 'RUNNING' and not r.over_ssh))) x
        union all
        select x.* from linked i cross join lateral (
          select x.ctid, x.rev, x.task_id, x.host_id from rsm.executions x
          where x.host_id = i.h and x.status = 'RUNNING' and not x.over_ssh
            and x.epoch = i.e and x.attempt <@ i.d offset 0) x
        where i.d is not null
        order by task_id, host_id)
      select x.place from found f cross join lateral (
        select x.ctid as place from rsm.executions x where x.ctid = f.place and x.rev = f.rev for update) x);
    return query update rsm.executions e
      set rec = e.rec || (offers->e.host_id::text->'p'), epoch = (offers->e.host_id::text->>'e')::bigint,
        attempt = this_attempt, rev = e.rev + 1, xid = pg_current_xact_id()
      where e.ctid = any (chosen) returning e.*;
  end $$`,
  // `claims`, by host: e the epoch of the link, x the tasks to leave. The record stays as it is; an attempt is one of its own server.
  `create function rsm.executions_take_over(claims jsonb) returns setof rsm.executions language plpgsql ${byIndex} as $$
  declare
    chosen tid[];
  begin
    chosen := array(
      with ${linked('claims', `value->'x' as x`)},
      found as materialized (
        select x.* from linked i cross join lateral (
          select x.task_id, x.host_id from rsm.executions x
          where x.host_id = i.h and x.status = 'RUNNING' and not x.over_ssh and not i.x ? x.task_id offset 0) x
        order by task_id, host_id)
      select x.place from found f cross join lateral (
        select x.ctid as place from rsm.executions x
        where x.task_id = f.task_id and x.host_id = f.host_id and x.status = 'RUNNING' for update) x);
    return query update rsm.executions e set epoch = (claims->e.host_id::text->>'e')::bigint, attempt = null
      where e.ctid = any (chosen) returning e.*;
  end $$`,
  // Hosts that have an execution to take.
  `create function rsm.hosts_waiting(hosts bigint[]) returns setof bigint language plpgsql stable ${byIndex} as $$
  begin
    return query select h from unnest(hosts) h cross join lateral (
      select from rsm.executions x
      where x.host_id = h and x.status = 'PENDING' and x.due_at is not null and not x.over_ssh limit 1) x;
  end $$`,
]
