export const shortLived: readonly string[] = [
  'create unlogged sequence rsm.short_lived_turns',
  // `ends`, ascending: when the value goes, or when what counts counts no more. `turn` orders the keys of a kind by when they were last kept.
  `create unlogged table rsm.short_lived (
    kind text not null,
    key text not null,
    value json,
    ends timestamptz[] not null,
    turn bigint not null default nextval('rsm.short_lived_turns'),
    primary key (kind, key)
  ) with (fillfactor = 60)`,
  'create index short_lived_turn on rsm.short_lived (kind, turn)',
]
