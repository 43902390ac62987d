/**
 * Recordings of terminal sessions in chunks, each at its offset, without a gap. Whoever writes holds `writer`; a newer one
 * fences it. `aside`: moved aside then, and no recording any more. Chunks before `packed` are joined to large ones.
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
  // Appends to several recordings, each of `size` bytes of `pieces` from `place`. Whether each of them stands; one that is
  // sent again stands once.
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
  // Joins the chunks from `first` to one, as long as the writer is the last.
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
  // Cuts one at `size` and fences whoever wrote it; nothing where there are fewer bytes.
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
