/** Of a row that names a server and its epoch. */
export const servers: readonly string[] = [
  // One life of each name. `lease_until` is the whole truth on who lives: who sees that the advisory lock of another one has fallen ends its lease.
  `create table rsm.servers (
    name text primary key,
    epoch bigint not null,
    lease_until timestamptz not null,
    joined_at timestamptz not null,
    version text not null,
    address text
  ) with (fillfactor = 60)`,
  // `epoch` is that of the server's life. Who writes for a task locks its row FOR SHARE; who takes it over changes the row.
  `create table rsm.task_owners (
    task_id text primary key,
    server text not null,
    epoch bigint not null
  ) with (fillfactor = 60)`,
]
