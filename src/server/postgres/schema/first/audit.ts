/** A part of a line as it stands there, by `rsm.audit_json`: a text, a number, or null where there is none. */
const part = (path: string) => `text collate "C" generated always as (rsm.audit_part(line, '${path}')) stored`

/**
 * The audit log. What lists are filtered by is made of the line and so is never other than it. A line that is no JSON, as a
 * file of an embedded server may hold, is in `damaged`, with all that stands before the next entry.
 */
export const audit: readonly string[] = [
  // PostgreSQL reads no JSON with an escaped NUL or half a surrogate pair: such escapes are taken as text.
  `create function rsm.audit_json(json text) returns text language sql immutable strict as $$
    select case when strpos(json, '\\u') = 0 then json
      else regexp_replace(json, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u', '\\1\\\\\\\\u', 'g') end
  $$`,
  `create function rsm.audit_part(line text, path text[]) returns text language plpgsql immutable strict as $$
  begin
    return (rsm.audit_json(line)::json #> path)::text;
  end $$`,
  // Whether a line has the form of the entry of its row.
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
  // The one row of the head keeps those that append in their order. One statement each: a server that stands still holds no lock.
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
