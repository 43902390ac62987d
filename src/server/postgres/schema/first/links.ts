export const links: readonly string[] = [
  // Logged: epochs must outlive a crash. Each claim changes `epoch`; a released link keeps it and has no server. Who writes for a
  // link locks its row FOR SHARE. `replaced_at`: the replacements of the last minute, the oldest first.
  `create table rsm.links (
    host_id bigint primary key,
    agent_id text not null,
    server text,
    server_epoch bigint,
    epoch bigint not null,
    since timestamptz not null,
    ready bool not null default false,
    replaced_at timestamptz[] not null default '{}',
    refused_until timestamptz
  ) with (fillfactor = 60)`,
  'create index links_refused on rsm.links (host_id) where refused_until is not null',
]
