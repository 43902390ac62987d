export const executions: readonly string[] = [
  // Of running tasks. `rec` is the record, and what is asked of it stands in columns that follow from it. `rev` counts its changes: whoever
  // writes one names the `rev` that was decided on. `xid`: the transaction of the last change, null before the first; by that others see
  // what has changed. `epoch`: of the link that it was marked for or that has taken it over, or of the member that does it over SSH.
  // `out_seq` and the three after it: of its output as far as that is stored.
  `create table rsm.executions(
    task_id text collate "C" not null, host_id bigint not null, position int not null, over_ssh bool not null,
    rec jsonb not null,
    status text collate "C" not null generated always as (rec->>'status') stored,
    due_at text collate "C" generated always as (rec->>'dueAt') stored,
    rev bigint not null default 0, xid xid8, epoch bigint,
    out_seq bigint not null default -1, stdout_bytes bigint not null default 0, stderr_bytes bigint not null default 0,
    frames bigint not null default 0,
    primary key (task_id, host_id)) with (fillfactor = 70)`,
  'create index executions_changed on rsm.executions (task_id, xid)',
  `create index executions_open on rsm.executions (host_id, status, due_at, task_id) where status in ('PENDING', 'RUNNING')`,
  `create index executions_waiting on rsm.executions (host_id)
    where status = 'PENDING' and due_at is not null and not over_ssh`,
  // Tasks of which nothing starts until a person has confirmed that the store was restored.
  'create table rsm.held(task_id text collate "C" primary key)',
  // Cancels that are under way: nothing of these tasks starts, and whoever finds one that its server has left ends it.
  `create table rsm.cancels(
    task_id text collate "C" primary key, at text not null, error text, since timestamptz not null default clock_timestamp())`,
]
