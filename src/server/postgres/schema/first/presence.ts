/** Unlogged here; the eighth migration makes the first two logged. Reports come again within a minute. */
export const presence: readonly string[] = [
  // What was told of a host; `at` is when, by the store's time.
  `create unlogged table rsm.presence (
    host_id bigint primary key,
    at timestamptz not null,
    status text not null,
    reason text,
    signs text not null
  ) with (fillfactor = 70)`,
  'create index presence_at on rsm.presence (at)',
  // Who was heard by a server in the seconds before `at`: a row a flush, instead of one a heartbeat.
  `create unlogged table rsm.presence_heard (
    at timestamptz not null,
    server_epoch bigint not null,
    ids text not null
  )`,
  'create index presence_heard_at on rsm.presence_heard (at)',
  // The newest report of each host, for servers that another one has told of its heartbeats.
  `create unlogged table rsm.presence_metrics (
    host_id bigint primary key,
    at timestamptz not null,
    metrics text not null
  ) with (fillfactor = 50)`,
]
