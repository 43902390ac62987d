/**
 * Which wire serves the terminal sessions of which server, by the epoch of that server's life. A wire lives as long as
 * someone holds the advisory lock of its number; a row of one that does not is of a server that was killed.
 */
export const relay: readonly string[] = [
  `create unlogged table rsm.relay_sites(
    epoch bigint primary key,
    server text not null,
    wire bigint not null)`,
  `create function rsm.relay_wires() returns setof bigint language sql volatile as $$
    select (classid::bigint << 32) | objid::bigint from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
  $$`,
]
