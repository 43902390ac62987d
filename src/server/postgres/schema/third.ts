/** What follows on the script of a task. Older servers write neither: what they store is of the script. */
export const third: readonly string[] = [
  // By its place in `phases` of core/task/gates.ts: 0 is the script. A default that is no null takes no room in the rows that are there.
  'alter table rsm.outputs add column phase smallint not null default 0',
  // JSON of the texts that followed, of type json as the script is.
  'alter table rsm.remains add column gates json',
]
