/** Column with a part of the audit line as JSON text, after `rsm.audit_json`: a string, a number, or null. */
const part = (path: string) => `text collate "C" generated always as (rsm.audit_part(line, '${path}')) stored`

/**
 * The audit log. Columns that lists filter by are generated from the line. A line that is not JSON, such as a
 * log file may contain, is in `damaged`, with everything up to the next entry.
 */
export const audit: readonly string[] = [
  // PostgreSQL rejects JSON with an escaped NUL or half a surrogate pair, so such escapes become plain text.
  `create function rsm.audit_json(json text) returns text language sql immutable strict as $$
    select case when strpos(json, '\\u') = 0 then json
      else regexp_replace(json, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u', '\\1\\\\\\\\u', 'g') end
  $$`,
  `create function rsm.audit_part(line text, path text[]) returns text language plpgsql immutable strict as $$
  begin
    return (rsm.audit_json(line)::json #> path)::text;
  end $$`,
  // Whether a line has the form of an entry with the id of its row.
  `create function rsm.audit_is_entry(id bigint, line text, at text, action text) returns bool language sql immutable as $$
    select coalesce(starts_with(line, '{"id":' || id::text || ',"at":"') and right(line, 75) like ',"hash":"%"}'
      and at is not null and action is not null, false)
  $$`,
  `create table rsm.audit(
    id bigint primary key,
    line text,
    damaged bytea,
    at ${part('{at}')},
    action ${part('{action}')},
    actor ${part('{actor,name}')},
    object_type ${part('{object,type}')},
    object_id ${part('{object,id}')},
    outcome ${part('{outcome}')},
    check (num_nonnulls(line, damaged) = 1))`,
  'create index on rsm.audit(action, id)',
  'create index on rsm.audit(actor, id)',
  'create index on rsm.audit(object_type, object_id, id)',
  'create index on rsm.audit(outcome, id)',
  'create index on rsm.audit(id) where not rsm.audit_is_entry(id, line, at, action)',
  // The order of times is nearly that of ids.
  'create index on rsm.audit using brin(at)',
  'create table rsm.audit_head(only_one bool primary key default true check (only_one), id bigint not null, hash text not null)',
  `insert into rsm.audit_head(id, hash) values (0, repeat('0', 64))`,
  `create table rsm.audit_noted(
    only_one bool primary key default true check (only_one), id bigint not null, hash text not null,
    at timestamptz not null, server text not null)`,
  // The one row of the head serializes appends. One statement each: a stalled server holds no lock.
  `create function rsm.audit_append(rests text, is_first bool) returns table(before bigint, hashes text[])
  language plpgsql as $$
  declare
    head rsm.audit_head;
    rest text;
    body text;
    lines text[] := '{}';
  begin
    select * into strict head from rsm.audit_head for update;
    before := head.id;
    hashes := '{}';
    if is_first and head.id > 0 then
      return;
    end if;
    foreach rest in array string_to_array(rests, E'\\n') loop
      head.id := head.id + 1;
      body := '{"id":' || head.id || ',' || rest;
      head.hash := encode(sha256(convert_to(head.hash || E'\\n' || body, 'UTF8')), 'hex');
      lines := lines || (left(body, -1) || ',"hash":"' || head.hash || '"}');
      hashes := hashes || head.hash;
    end loop;
    insert into rsm.audit(id, line)
      select audit_append.before + made.place, made.line from unnest(lines) with ordinality as made(line, place);
    update rsm.audit_head set id = head.id, hash = head.hash;
    return next;
  end $$`,
]

/**
 * Metrics of hosts. New samples are rows of `metrics_fresh`, in the partition of their hour; four partitions
 * take turns. When the hour is over, a server packs it into `metrics_packed`: a row for each host, hour and
 * UTC day of the samples. Its partitions are days, which a sweep drops. Times are milliseconds since the
 * epoch.
 */
export const metrics: readonly string[] = [
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
  // Already compressed.
  'alter table rsm.metrics_packed alter column data set storage external',
  `create function rsm.metrics_slot() returns smallint language sql volatile as $$
    select (floor(extract(epoch from rsm.now()) / 3600)::bigint % 4)::smallint
  $$`,
  // A crash of PostgreSQL may lose the last second of metrics: a commit does not wait for the disk. Duplicates are dropped.
  `create function rsm.metrics_append(hosts bigint[], times bigint[], lines text) returns void language plpgsql as $$
  begin
    perform set_config('synchronous_commit', 'off', true);
    insert into rsm.metrics_fresh(slot, host_id, at, line)
    select rsm.metrics_slot(), given.* from unnest(hosts, times, string_to_array(lines, E'\\n')) as given
    on conflict do nothing;
  end $$`,
  // Removes and returns the samples of the next hosts of a past hour.
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
  // Empties the partition of a packed hour, unless late samples are in it.
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

/**
 * Recordings of terminal sessions in chunks, each at its offset, without gaps. A newer `writer` fences the
 * previous one. `aside`: when it was moved aside, and stopped being a recording. Chunks before `packed` are
 * packed into large ones.
 */
export const recordings: readonly string[] = [
  `create table rsm.recordings(
    key bigint generated always as identity primary key,
    id text not null,
    writer bigint not null,
    bytes bigint not null,
    packed bigint not null default 0,
    changed_at timestamptz not null,
    aside timestamptz)`,
  'create unique index recordings_id on rsm.recordings(id) where aside is null',
  'create index on rsm.recordings(aside) where aside is not null',
  `create table rsm.recording_chunks(
    recording bigint not null,
    start bigint not null,
    data bytea not null,
    sum bytea not null generated always as (substring(sha256(data) for 8)) stored,
    primary key (recording, start))`,
  // Appends to several recordings, to each `size` bytes of `pieces` from `place`. Returns whether each is stored; a repeated
  // append is stored once.
  `create function rsm.recordings_append(
    keys bigint[], writers bigint[], starts bigint[], places int[], sizes int[], pieces bytea)
  returns table(key bigint, stands bool) language sql as $$
    with given as (
      select * from unnest(keys, writers, starts, places, sizes) as g(key, writer, start, place, size)),
    own as (
      update rsm.recordings r set bytes = g.start + g.size, changed_at = rsm.now()
      from given g where r.key = g.key and r.writer = g.writer and r.bytes = g.start
      returning g.*),
    written as (
      insert into rsm.recording_chunks(recording, start, data)
      select own.key, own.start, substring(pieces from own.place for own.size) from own)
    select g.key, own.key is not null or coalesce(r.writer = g.writer and r.bytes = g.start + g.size, false)
    from given g left join own using (key) left join rsm.recordings r using (key)
  $$`,
  // Packs the chunks from `first` up to `behind` into one, unless a newer writer has fenced this one.
  `create function rsm.recording_pack(held bigint, holder bigint, first bigint, behind bigint) returns void language plpgsql as $$
  begin
    update rsm.recordings set packed = behind where key = held and writer = holder and packed = first;
    if not found then
      return;
    end if;
    with gone as (
      delete from rsm.recording_chunks where recording = held and start >= first and start < behind returning start, data)
    insert into rsm.recording_chunks(recording, start, data)
    select held, min(start), string_agg(data, ''::bytea order by start) from gone having count(*) > 0;
  end $$`,
  // Cuts a recording at `size` and fences its writer; does nothing if it has fewer bytes.
  `create function rsm.recording_reopen(session text, size bigint) returns table(key bigint, writer bigint, packed bigint)
  language plpgsql as $$
  declare
    held rsm.recordings;
  begin
    select * into held from rsm.recordings r where r.id = session and r.aside is null for update;
    if not found or held.bytes < size then
      return;
    end if;
    delete from rsm.recording_chunks c where c.recording = held.key and c.start >= size;
    update rsm.recording_chunks c set data = substring(c.data for (size - c.start)::int)
      where c.recording = held.key and c.start + length(c.data) > size
        and c.start = (select max(o.start) from rsm.recording_chunks o where o.recording = held.key);
    return query update rsm.recordings r
      set writer = nextval('rsm.epochs'), bytes = size, packed = least(r.packed, size), changed_at = rsm.now()
      where r.key = held.key returning r.key, r.writer, r.packed;
  end $$`,
]

/**
 * Bytes of files on their way to or from hosts, in chunks of a content. Finished files with equal bytes share
 * one content, which then has a sha256.
 */
export const files: readonly string[] = [
  `create table rsm.file_contents(
    id bigint generated always as identity primary key, sha256 text collate "C" unique, size bigint not null)`,
  `create table rsm.file_places(
    id text collate "C" primary key, content_id bigint not null references rsm.file_contents(id))`,
  'create index on rsm.file_places(content_id)',
  `create table rsm.file_chunks(
    content_id bigint not null references rsm.file_contents(id), start bigint not null, data bytea not null,
    primary key (content_id, start))`,
  // Most copied files are compressed already.
  'alter table rsm.file_chunks alter column data set storage external',
  // Switches the file to the content of another file with the same bytes; `file_clear` removes its own.
  `create function rsm.file_share(file text, sum text) returns void language plpgsql as $$
  declare
    own bigint;
    other bigint;
  begin
    perform pg_advisory_xact_lock(hashtextextended('file/' || sum, 0));
    select content_id into own from rsm.file_places where id = file for update;
    select c.id into other from rsm.file_contents c, rsm.file_contents o
      where c.sha256 = sum and o.id = own and c.size = o.size;
    if other is null then
      update rsm.file_contents set sha256 = sum
        where id = own and not exists (select from rsm.file_contents where sha256 = sum);
    elsif other <> own then
      update rsm.file_places set content_id = other where id = file;
    end if;
  end $$`,
  // A content without files is no longer shared, and is cleared in steps, because it may have thousands of chunks.
  `create function rsm.file_remove(file text) returns void language plpgsql as $$
  declare
    own bigint;
    sum text;
  begin
    select p.content_id, c.sha256 into own, sum
      from rsm.file_places p join rsm.file_contents c on c.id = p.content_id where p.id = file;
    perform pg_advisory_xact_lock(hashtextextended('file/' || coalesce(sum, file), 0));
    delete from rsm.file_places where id = file returning content_id into own;
    update rsm.file_contents c set sha256 = null
      where id = own and not exists (select from rsm.file_places p where p.content_id = own);
  end $$`,
  // Clears one step; returns whether there may be more.
  `create function rsm.file_clear(most int) returns bool language plpgsql as $$
  declare
    own bigint;
    cleared int;
  begin
    select c.id into own from rsm.file_contents c
      where not exists (select from rsm.file_places p where p.content_id = c.id) order by id limit 1 for update skip locked;
    if own is null then
      return false;
    end if;
    with gone as (select start from rsm.file_chunks where content_id = own limit most)
      delete from rsm.file_chunks where content_id = own and start in (select start from gone);
    get diagnostics cleared = row_count;
    if cleared < most then
      delete from rsm.file_contents where id = own;
    end if;
    return true;
  end $$`,
]
