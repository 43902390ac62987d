/** What finished tasks leave beside their output. `rec` of a result: at least the fields of TaskResult. */
export const results: readonly string[] = [
  'create table rsm.remains(task_id text collate "C" primary key, script json not null, aside_at timestamptz)',
  `create table rsm.results(
    task_id text collate "C" not null, host_id bigint not null, position int not null, rec jsonb not null,
    primary key (task_id, host_id))`,
]
