/**
 * Metrics of hosts. What comes stands in `metrics_fresh`, a row a sample, in the partition of its hour, of which there are
 * four in turn. When the hour is over a server packs it: in `metrics_packed`, a row for each host, hour and UTC day of the samples,
 * in partitions by day that a sweep drops. Times are milliseconds since the epoch.
 */
export const history: readonly string[] = [
  `create table rsm.metrics_fresh(
    host_id bigint not null, at bigint not null, slot smallint not null, line text not null,
    primary key (host_id, at, slot)) partition by list (slot)`,
  ...[0, 1, 2, 3].map(
    (slot) => `create table rsm.metrics_fresh_${slot} partition of rsm.metrics_fresh for values in (${slot})`,
  ),
  // The order of times is nearly that of the rows.
  'create index on rsm.metrics_fresh using brin(at)',
  `create table rsm.metrics_packed(
    day date not null, host_id bigint not null, first bigint not null, last bigint not null, data bytea not null)
    partition by list (day)`,
  'create index on rsm.metrics_packed(host_id, first)',
  // It is compressed already.
  'alter table rsm.metrics_packed alter column data set storage external',
  `create function rsm.metrics_slot() returns smallint language sql volatile as $$
    select (floor(extract(epoch from rsm.now()) / 3600)::bigint % 4)::smallint
  $$`,
  // The last second of metrics may be lost with PostgreSQL: nobody waits for its disk. One that comes twice stands once.
  `create function rsm.metrics_append(hosts bigint[], times bigint[], lines text) returns void language plpgsql as $$
  begin
    perform set_config('synchronous_commit', 'off', true);
    insert into rsm.metrics_fresh(slot, host_id, at, line)
    select rsm.metrics_slot(), given.* from unnest(hosts, times, string_to_array(lines, E'\\n')) as given
    on conflict do nothing;
  end $$`,
  // The samples of the next hosts of an hour that is over, which are gone from it with the transaction.
  `create function rsm.metrics_take(hour smallint, after bigint, most int) returns table(host_id bigint, lines text)
  language plpgsql as $$
  begin
    perform set_config('synchronous_commit', 'off', true);
    return query
      with hosts as (
        select distinct f.host_id from rsm.metrics_fresh f where f.slot = hour and f.host_id > after order by 1 limit most),
      gone as (
        delete from rsm.metrics_fresh f using hosts h where f.slot = hour and f.host_id = h.host_id
        returning f.host_id, f.at, f.line)
      select g.host_id, string_agg(g.line, E'\\n' order by g.at) from gone g group by g.host_id order by 1;
  end $$`,
  // Gives the room of an hour back that has been packed; nothing where something has come late.
  `create function rsm.metrics_clear(hour smallint) returns void language plpgsql as $$
  begin
    execute format('lock table rsm.metrics_fresh_%s in access exclusive mode', hour);
    if not exists (select from rsm.metrics_fresh where slot = hour) then
      execute format('truncate rsm.metrics_fresh_%s', hour);
    end if;
  end $$`,
  `create function rsm.metrics_day(day date) returns void language plpgsql as $$
  declare
    name text := 'metrics_' || to_char(day, 'YYYY_MM_DD');
  begin
    if to_regclass('rsm.' || name) is null then
      execute format('create table rsm.%I partition of rsm.metrics_packed for values in (%L)', name, day);
    end if;
  end $$`,
]
