/**
 * Files on their way to hosts or from them. `files` are their records; the bytes stand in chunks of a content, which files that
 * are equal and finished share: then it has a sha256.
 */
export const sixth: readonly string[] = [
  'create table rsm.files(id text collate "C" primary key, rec json not null, "expiresAt" text collate "C")',
  'create index on rsm.files("expiresAt")',
  'alter table rsm.tasks add column "fileId" text collate "C"',
  'create index on rsm.tasks("fileId", id) where "fileId" is not null',
  `create table rsm.file_contents(
    id bigint generated always as identity primary key, sha256 text collate "C" unique, size bigint not null)`,
  `create table rsm.file_places(
    id text collate "C" primary key, content_id bigint not null references rsm.file_contents(id))`,
  'create index on rsm.file_places(content_id)',
  `create table rsm.file_chunks(
    content_id bigint not null references rsm.file_contents(id), start bigint not null, data bytea not null,
    primary key (content_id, start))`,
  // Most of what is copied is compressed already.
  'alter table rsm.file_chunks alter column data set storage external',
  // Where others have the same bytes the file takes theirs, and its own go.
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
  // What no file has any more is shared with none, and is cleared in steps: its chunks may be thousands.
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
  // Answers whether there is more to clear.
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
