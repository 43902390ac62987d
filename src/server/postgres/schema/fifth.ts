/** Schedules, what became of their slots, and which tasks are theirs. */
export const fifth: readonly string[] = [
  `create table rsm.schedules(
    id bigint primary key, rec json not null,
    name text collate "C" unique deferrable initially deferred,
    "ownerId" bigint, "dueAtOrder" text collate "C")`,
  'create index on rsm.schedules("ownerId", id)',
  'create index on rsm.schedules("dueAtOrder", id)',
  'create sequence rsm.schedules_ids',
  'create table rsm.slots(id text collate "C" primary key, rec json not null, "scheduleId" bigint)',
  'create index on rsm.slots("scheduleId", id)',
  // A server of before writes none: its tasks are of no schedule.
  'alter table rsm.tasks add column "scheduleId" bigint',
  'create index on rsm.tasks("scheduleId", id)',
]
