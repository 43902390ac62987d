/** Columns of nouns with numeric ids. */
const numbered = 'id bigint primary key, rec json not null'
/** Columns of nouns with text ids. */
const named = 'id text collate "C" primary key, rec json not null'
/** A unique column, checked when a transaction commits, so that two records may swap names. */
const unique = 'text collate "C" unique deferrable initially deferred'
const text = 'text collate "C"'

/**
 * A table for each noun of storage/records/records.ts. `rec` is the record unchanged: JSON as text, which
 * keeps unknown fields, any character and the order of keys. Queries use the other columns, filled by
 * `indexes`, `asked` and `orders`.
 */
export const records: readonly string[] = [
  `create table rsm.hosts(
    ${numbered}, hostname ${unique}, "agentId" ${unique}, "agentToken" ${unique},
    ip ${text}, tags jsonb, "hostnameOrder" ${text})`,
  'create index on rsm.hosts("hostnameOrder", id)',
  'create index on rsm.hosts using gin (tags jsonb_path_ops)',
  `create table rsm.scripts(
    ${numbered}, name ${unique}, description ${text}, type ${text}, category ${text}, tags jsonb)`,
  `create table rsm.clusters(${numbered}, name ${unique}, description ${text}, "hostIds" jsonb)`,
  `create table rsm.users(${numbered}, username ${unique}, email ${text}, role ${text}, enabled boolean)`,
  `create table rsm.tokens(
    ${numbered}, "tokenHash" ${unique}, "userId" bigint, name ${text}, kind ${text}, "expiresAt" ${text})`,
  'create index on rsm.tokens("userId", id)',
  'create index on rsm.tokens(name, id)',
  'create index on rsm.tokens("expiresAt")',
  `create table rsm.enrollments(${numbered}, "tokenHash" ${unique}, name ${text}, "expiresAt" ${text})`,
  'create index on rsm.enrollments(name, id)',
  `create table rsm.schedules(
    ${numbered}, name ${unique}, "ownerId" bigint, "dueAtOrder" ${text}, "fileId" ${text})`,
  'create index on rsm.schedules("ownerId", id)',
  'create index on rsm.schedules("dueAtOrder", id)',
  'create index on rsm.schedules("fileId", id) where "fileId" is not null',
  `create table rsm.webhooks(${numbered}, name ${unique})`,
  ...['hosts', 'scripts', 'clusters', 'users', 'tokens', 'enrollments', 'schedules', 'webhooks'].map(
    (noun) => `create sequence rsm.${noun}_ids`,
  ),
  `create table rsm.slots(${named}, "scheduleId" bigint)`,
  'create index on rsm.slots("scheduleId", id)',
  `create table rsm.deliveries(${named}, "webhookId" bigint, queue ${text}, "endedAt" ${text})`,
  'create index on rsm.deliveries("webhookId", id)',
  'create index on rsm.deliveries(queue, id)',
  'create index on rsm.deliveries("endedAt")',
  `create table rsm.tombstones(${named})`,
  // `hostSet`: the blocks of store/tables.ts.
  `create table rsm.tasks(
    ${named}, status ${text}, "scriptId" bigint, "clusterId" bigint, "createdBy" ${text},
    "hostSet" bigint[], "completedAt" ${text}, "scheduleId" bigint, "fileId" ${text})`,
  'create index on rsm.tasks(status, id)',
  'create index on rsm.tasks("scriptId", id)',
  'create index on rsm.tasks("clusterId", id)',
  'create index on rsm.tasks("createdBy", id)',
  'create index on rsm.tasks("completedAt")',
  'create index on rsm.tasks("scheduleId", id)',
  'create index on rsm.tasks("fileId", id) where "fileId" is not null',
  'create index on rsm.tasks using gin ("hostSet")',
  `create table rsm.idempotency(${named}, "createdAt" ${text})`,
  'create index on rsm.idempotency("createdAt")',
  `create table rsm.terminals(
    ${named}, status ${text}, "hostId" bigint, "user" ${text}, "userId" bigint, "endedAt" ${text})`,
  'create index on rsm.terminals(status, id)',
  'create index on rsm.terminals("hostId", id)',
  'create index on rsm.terminals("user", id)',
  'create index on rsm.terminals("userId", id)',
  'create index on rsm.terminals("endedAt")',
  `create table rsm.keys(${named})`,
  // `progress`: number of the last mark of this start that agents may remember.
  `create table rsm.runs(${named}, progress bigint not null default 0)`,
  `create table rsm.files(${named}, "expiresAt" ${text})`,
  'create index on rsm.files("expiresAt")',
  `create table rsm.script_versions(
    script_id bigint not null, version int not null, rec json not null, aside_at timestamptz,
    primary key (script_id, version))`,

  // Changes for other servers: each put and each removal, with its transaction.
  'create table rsm.changes(xid xid8 not null default pg_current_xact_id(), noun text not null, id text not null)',
  'create index on rsm.changes(xid)',
  // Sweep of rsm.changes: rows below `below` are gone; the next sweep removes those below `next`.
  `create table rsm.feed(
    only_one bool primary key default true check (only_one),
    below xid8 not null, next xid8 not null, swept_at timestamptz not null)`,
  `insert into rsm.feed(below, next, swept_at) values ('0', '0', clock_timestamp())`,
]
