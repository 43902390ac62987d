export const outputs: readonly string[] = [
  // `last`: the highest id of the task's output. Who adds some locks the row until it commits, so that ids come in the order of commits.
  `create table rsm.output_heads(
    task_id text collate "C" primary key, last bigint not null, bytes bigint not null) with (fillfactor = 50)`,
  // A table for each day of ids of tasks, made when it is needed: what is too old goes with its table, at once. `at`: milliseconds
  // since 1970. `bytes`: of the text as UTF-8. `data`: the text as JSON, quotes included.
  `create table rsm.outputs(
    task_id text collate "C" not null, id bigint not null, host_id bigint not null, is_stderr bool not null,
    sequence bigint not null, at bigint not null, bytes int not null, data bytea not null,
    primary key (task_id, id)) partition by range (task_id)`,
  'alter table rsm.outputs alter column data set storage external',
  'create table rsm.outputs_other partition of rsm.outputs default',
  // Tasks without a head whose pieces wait for their table to go.
  'create table rsm.outputs_forgotten(task_id text collate "C" primary key, at timestamptz not null default clock_timestamp())',
]
