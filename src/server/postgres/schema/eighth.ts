/** The last known status of hosts outlives a crash of PostgreSQL, and is on a standby that is promoted. */
export const eighth: readonly string[] = [
  'alter table rsm.presence set logged',
  'alter table rsm.presence_heard set logged',
]
