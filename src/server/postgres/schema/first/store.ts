/**
 * A table a noun of seams/records.ts. `rec` is the record as it was given: JSON as text, which keeps what this server does not
 * know, any character and the order of keys. What queries ask for stands in columns beside it, as the functions of `indexes`,
 * `asked` and `orders` say. Unique ones are looked at when a transaction commits, so that two records may swap names.
 */
export const store: readonly string[] = [
  `create table rsm.hosts(
    id bigint primary key, rec json not null,
    hostname text collate "C" unique deferrable initially deferred,
    "agentId" text collate "C" unique deferrable initially deferred,
    "agentToken" text collate "C" unique deferrable initially deferred,
    ip text collate "C", tags jsonb, "hostnameOrder" text collate "C")`,
  'create index on rsm.hosts("hostnameOrder", id)',
  'create index on rsm.hosts using gin (tags jsonb_path_ops)',
  `create table rsm.scripts(
    id bigint primary key, rec json not null,
    name text collate "C" unique deferrable initially deferred,
    description text collate "C", type text collate "C", category text collate "C", tags jsonb)`,
  `create table rsm.clusters(
    id bigint primary key, rec json not null,
    name text collate "C" unique deferrable initially deferred,
    description text collate "C", "hostIds" jsonb)`,
  `create table rsm.users(
    id bigint primary key, rec json not null,
    username text collate "C" unique deferrable initially deferred,
    email text collate "C", role text collate "C", enabled boolean)`,
  `create table rsm.tokens(
    id bigint primary key, rec json not null,
    "tokenHash" text collate "C" unique deferrable initially deferred,
    "userId" bigint, name text collate "C", kind text collate "C", "expiresAt" text collate "C")`,
  'create index on rsm.tokens("userId", id)',
  'create index on rsm.tokens(name, id)',
  'create index on rsm.tokens("expiresAt")',
  `create table rsm.enrollments(
    id bigint primary key, rec json not null,
    "tokenHash" text collate "C" unique deferrable initially deferred,
    name text collate "C", "expiresAt" text collate "C")`,
  'create index on rsm.enrollments(name, id)',
  'create table rsm.tombstones(id text collate "C" primary key, rec json not null)',
  // `hostSet`: the blocks of id-blocks.ts.
  `create table rsm.tasks(
    id text collate "C" primary key, rec json not null,
    status text collate "C", "scriptId" bigint, "clusterId" bigint, "createdBy" text collate "C",
    "hostSet" bigint[], "completedAt" text collate "C")`,
  'create index on rsm.tasks(status, id)',
  'create index on rsm.tasks("scriptId", id)',
  'create index on rsm.tasks("clusterId", id)',
  'create index on rsm.tasks("createdBy", id)',
  'create index on rsm.tasks("completedAt")',
  'create index on rsm.tasks using gin ("hostSet")',
  'create table rsm.idempotency(id text collate "C" primary key, rec json not null, "createdAt" text collate "C")',
  'create index on rsm.idempotency("createdAt")',
  `create table rsm.terminals(
    id text collate "C" primary key, rec json not null,
    status text collate "C", "hostId" bigint, "user" text collate "C", "userId" bigint, "endedAt" text collate "C")`,
  'create index on rsm.terminals(status, id)',
  'create index on rsm.terminals("hostId", id)',
  'create index on rsm.terminals("user", id)',
  'create index on rsm.terminals("userId", id)',
  'create index on rsm.terminals("endedAt")',
  'create table rsm.keys(id text collate "C" primary key, rec json not null)',
  // `progress`: the number of the last mark of this start that agents may remember.
  'create table rsm.runs(id text collate "C" primary key, rec json not null, progress bigint not null default 0)',
  ...['hosts', 'scripts', 'clusters', 'users', 'tokens', 'enrollments'].map(
    (noun) => `create sequence rsm.${noun}_ids`,
  ),
  // What other servers hear of: each put and each removal, by the transaction that did it.
  'create table rsm.changes(xid xid8 not null default pg_current_xact_id(), noun text not null, id text not null)',
  'create index on rsm.changes(xid)',
  // Of rsm.changes all below `below` has been removed; at the next sweep all below `next` goes.
  `create table rsm.feed(
    only_one bool primary key default true check (only_one),
    below xid8 not null, next xid8 not null, swept_at timestamptz not null)`,
  `insert into rsm.feed(below, next, swept_at) values ('0', '0', clock_timestamp())`,
  `create table rsm.script_versions(
    script_id bigint not null, version int not null, rec json not null, aside_at timestamptz,
    primary key (script_id, version))`,
]
