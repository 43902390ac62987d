/** Settings of a function that reads rsm.executions by its indexes. */
const byIndex = 'set enable_seqscan = off set jit = off'

/** Offers or claims by host whose links are still the newest, locked until the commit. */
const linked = (hosts: string, fields: string) => `linked as materialized (
      select i.* from (
        select key::bigint as h, (value->>'e')::bigint as e, ${fields} from jsonb_each(${hosts}) order by 1) i
      cross join lateral (
        select from rsm.links l where l.host_id = i.h and l.epoch = i.e and l.server is not null for share) l)`

/** Adds rows of `changes`, each a task_id, status and count, to rsm.execution_counts. */
export const countText = (changes: string) => `insert into rsm.execution_counts as c(task_id, status, count)
    select task_id, status, sum(count) from (${changes}) as moved(task_id, status, count) group by 1, 2 order by 1, 2
    on conflict (task_id, status, slot) do update set count = c.count + excluded.count`

/** Servers, links and the last known status of hosts. */
export const servers: readonly string[] = [
  // Numbers of servers, owners of tasks and links; never reused: a write under a lower one is fenced.
  'create sequence rsm.epochs',
  // Time by which leases, tickets and signatures expire on all servers. Tests replace it.
  'create function rsm.now() returns timestamptz language sql volatile as $$ select clock_timestamp() $$',
  // One life of each name. `endpoint`: how other servers reach it, sealed. `lease_until` alone decides which
  // servers live: a server that sees another's advisory lock released ends its lease.
  `create table rsm.servers (
    name text primary key,
    epoch bigint not null,
    lease_until timestamptz not null,
    joined_at timestamptz not null,
    version text not null,
    address text,
    endpoint text
  ) with (fillfactor = 60)`,
  // `epoch` is that of the server's life. A write for a task locks its row FOR SHARE; a take-over changes the row.
  `create table rsm.task_owners (
    task_id text primary key,
    server text not null,
    epoch bigint not null
  ) with (fillfactor = 60)`,

  // Logged: epochs must outlive a crash. Each claim changes `epoch`; a released link keeps it and has no
  // server. A write for a link locks its row FOR SHARE. `replaced_at`: the replacements of the last minute,
  // the oldest first.
  `create table rsm.links (
    host_id bigint primary key,
    agent_id text not null,
    server text,
    server_epoch bigint,
    epoch bigint not null,
    since timestamptz not null,
    ready bool not null default false,
    replaced_at timestamptz[] not null default '{}',
    refused_until timestamptz
  ) with (fillfactor = 60)`,
  'create index links_refused on rsm.links (host_id) where refused_until is not null',

  // Hosts as servers know them, in parts (presence/patches.ts). `turn` ascends with each write, in the
  // order of the commits; `heard_at` orders `beat`, in milliseconds since 1970, and `link_epoch` orders
  // `link`. Logged, so that it survives a crash of PostgreSQL and the promotion of a standby.
  'create sequence rsm.presence_turns',
  `create table rsm.presence (
    host_id bigint primary key,
    turn bigint not null default nextval('rsm.presence_turns'),
    heard_at bigint,
    link_epoch bigint,
    beat text,
    link text,
    load text,
    marks text,
    greeting text,
    standing text
  )`,
  'create index presence_turn on rsm.presence (turn, host_id)',
  // Hosts whose heartbeats after `at` said nothing new: one row per second and server, instead of one per heartbeat.
  `create table rsm.presence_heard (
    turn bigint not null,
    server_epoch bigint not null,
    at bigint not null,
    ids text not null
  )`,
  'create index presence_heard_turn on rsm.presence_heard (turn)',
  // Newest report of each host, for servers that did not get it themselves. Unlogged, because reports repeat within a minute.
  `create unlogged table rsm.presence_metrics (
    host_id bigint primary key,
    at bigint not null,
    metrics text not null
  ) with (fillfactor = 50)`,

  'create unlogged sequence rsm.short_lived_turns',
  // `ends`, ascending: when the value, or what it counts, expires. `turn` orders the keys of a kind by when they were last kept.
  `create unlogged table rsm.short_lived (
    kind text not null,
    key text not null,
    value json,
    ends timestamptz[] not null,
    turn bigint not null default nextval('rsm.short_lived_turns'),
    primary key (kind, key)
  ) with (fillfactor = 60)`,
  'create index short_lived_turn on rsm.short_lived (kind, turn)',
]

/**
 * Executions of running tasks. The functions send them (docs/inside/sent-once.md) at a cost per host that
 * does not grow with the table. PostgreSQL may plan a plain statement while rsm.executions is empty, and keep
 * that plan, which reads the whole table once per host. The functions forbid sequential scans, join from the
 * hosts to their rows, and find the rows that they have locked by `ctid`.
 */
export const executions: readonly string[] = [
  // `rec` is the record; columns for queries are generated from it. `rev` counts its changes: a write
  // requires the `rev` that it was decided on. `xid`: transaction of the last change, null before the first;
  // others find changes by it. `epoch`: of the link that it was marked for or that has taken it over, or of
  // the member that runs it over SSH. `out_seq` and the three after it: its stored output. `attempt`: number
  // of the take that sent it, counted by the server whose link has it; null after a take-over.
  `create table rsm.executions(
    task_id text collate "C" not null, host_id bigint not null, position int not null, over_ssh bool not null,
    rec jsonb not null,
    status text collate "C" not null generated always as (rec->>'status') stored,
    due_at text collate "C" generated always as (rec->>'dueAt') stored,
    rev bigint not null default 0, xid xid8, epoch bigint,
    out_seq bigint not null default -1, stdout_bytes bigint not null default 0, stderr_bytes bigint not null default 0,
    frames bigint not null default 0, attempt bigint,
    primary key (task_id, host_id)) with (fillfactor = 70)`,
  'create index executions_changed on rsm.executions (task_id, xid)',
  `create index executions_open on rsm.executions (host_id, status, due_at, task_id) where status in ('PENDING', 'RUNNING')`,
  `create index executions_waiting on rsm.executions (host_id)
    where status = 'PENDING' and due_at is not null and not over_ssh`,
  // Executions of a task by status: the sum over its slots. The statement that changes executions also
  // changes their counts. It does so last, in the order of the key, so that each lock is held only for the
  // commit. Each connection uses one slot, to avoid waiting for other commits.
  `create table rsm.execution_counts(
    task_id text collate "C" not null, status text collate "C" not null, slot int not null default pg_backend_pid() % 8,
    count bigint not null, primary key (task_id, status, slot)) with (fillfactor = 50)`,
  // Tasks whose executions do not start until a person has confirmed a restore of the store.
  'create table rsm.held(task_id text collate "C" primary key)',
  // Cancels in progress: no execution of these tasks starts; a server that finds one abandoned finishes it.
  `create table rsm.cancels(
    task_id text collate "C" primary key, at text not null, error text, since timestamptz not null default clock_timestamp())`,

  // `offers`, by host: e the epoch of the link, c its capacity, p what sending changes, d the ranges of
  // attempts whose answers were lost.
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
    return query with counted as (
        ${countText(`select x.task_id, m.status, m.count from rsm.executions x
          cross join (values ('PENDING', -1), ('RUNNING', 1)) as m(status, count)
          where x.ctid = any (chosen) and x.status = 'PENDING'`)})
      update rsm.executions e
      set rec = e.rec || (offers->e.host_id::text->'p'), epoch = (offers->e.host_id::text->>'e')::bigint,
        attempt = this_attempt, rev = e.rev + 1, xid = pg_current_xact_id()
      where e.ctid = any (chosen) returning e.*;
  end $$`,
  // `claims`, by host: e the epoch of the link, x the tasks to leave. The record is unchanged; `attempt` is
  // cleared, because each server counts its own.
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
  // Filters hosts that have an execution to take.
  `create function rsm.hosts_waiting(hosts bigint[]) returns setof bigint language plpgsql stable ${byIndex} as $$
  begin
    return query select h from unnest(hosts) h cross join lateral (
      select from rsm.executions x
      where x.host_id = h and x.status = 'PENDING' and x.due_at is not null and not x.over_ssh limit 1) x;
  end $$`,
]

/** Output of tasks, and the results of those that ended. */
export const outputs: readonly string[] = [
  // `last`: the highest id of the task's output. An append locks the row until it commits, so that ids come
  // in the order of commits.
  `create table rsm.output_heads(
    task_id text collate "C" primary key, last bigint not null, bytes bigint not null) with (fillfactor = 50)`,
  // A table for each day of task ids, created on demand, so that expired output is dropped with its table.
  // `at`: milliseconds since 1970. `bytes`: of the text as UTF-8. `data`: the text as JSON, with quotes.
  // `phase`: index in `phases` of core/tasks/gates.ts; 0 is the script.
  `create table rsm.outputs(
    task_id text collate "C" not null, id bigint not null, host_id bigint not null, is_stderr bool not null,
    sequence bigint not null, at bigint not null, bytes int not null, data bytea not null,
    phase smallint not null default 0,
    primary key (task_id, id)) partition by range (task_id)`,
  'alter table rsm.outputs alter column data set storage external',
  'create table rsm.outputs_other partition of rsm.outputs default',
  // Tasks without a head whose output is removed with its table.
  'create table rsm.outputs_forgotten(task_id text collate "C" primary key, at timestamptz not null default clock_timestamp())',
  // Scripts of ended tasks, as JSON; `gates`: the scripts for verification and rollback.
  'create table rsm.remains(task_id text collate "C" primary key, script json not null, aside_at timestamptz, gates json)',
  // For housekeeping, which would otherwise read every script: 156 MB in 0.2 s for 100,000 tasks with 1.5 kB each.
  'create index remains_there on rsm.remains(task_id) where aside_at is null',
  'create index remains_aside on rsm.remains(aside_at) where aside_at is not null',
  // `rec`: at least the fields of TaskResult.
  `create table rsm.results(
    task_id text collate "C" not null, host_id bigint not null, position int not null, rec jsonb not null,
    primary key (task_id, host_id))`,
]
