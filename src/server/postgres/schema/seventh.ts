/** Which schedules name a file: it is kept for as long as one does. */
export const seventh: readonly string[] = [
  'alter table rsm.schedules add column "fileId" text collate "C"',
  'create index on rsm.schedules("fileId", id) where "fileId" is not null',
]
