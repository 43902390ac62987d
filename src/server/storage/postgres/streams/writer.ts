import { RsmError } from '../../../../core/errors.ts'
import { phases } from '../../../../core/tasks/gates.ts'
import { hasCheck, withoutCheck } from '../../../../disk/digest.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import { lineOfLength, splitLine } from '../../output-line.ts'
import type { AnyRecord, Noun } from '../../records/records.ts'
import { parseSample } from '../../samples.ts'
import { blobsOf, type Items, type LastKnown, linesOf, type Writer, writeFiles } from '../../streams.ts'
import type { Ask, Database } from '../connection/database.ts'
import { createFiles } from '../files.ts'
import { pieceBytes } from '../outputs/append.ts'
import { makeTable, tableOf as outputTableOf } from '../outputs/days.ts'
import { type HostPatch, parts } from '../presence/patches.ts'
import { countText } from '../schema/running.ts'
import { putText, putValues } from '../store/changes.ts'
import { isNumbered, tableOf } from '../store/tables.ts'
import { packSamples } from '../stored-samples.ts'
import { type AuditRow, auditRows } from './audit-rows.ts'

/** Rows per statement, and approximate bytes. */
const mostRows = 2000
const mostBytes = 2 * 1024 * 1024
/** Bytes per chunk of a recording. */
const chunkBytes = 256 * 1024

/** Fills the empty tables of a store; `ask` has no statement timeout. */
export function createPostgresWriter(database: Database, ask: Ask): Writer {
  /** Days whose tables for output or samples exist. */
  const days = new Set<string>()
  const once = async (day: string, make: () => Promise<unknown>) => {
    if (days.has(day)) return
    await make()
    days.add(day)
  }
  return {
    async identity(items) {
      for await (const item of items) await writeIdentity(ask, item)
    },
    async records(items) {
      for await (const group of grouped(items, mostRows)) await writeRecords(ask, group)
    },
    async executions(items) {
      for await (const group of grouped(items, mostRows)) await writeExecutions(ask, group)
    },
    async results(items) {
      const groups = grouped(whole(items), mostRows, ({ results }) => results.length + 1)
      for await (const group of groups) await writeResults(ask, group)
    },
    async versions(items) {
      for await (const group of grouped(items, mostRows / 10)) await writeVersions(ask, group)
    },
    async output(items) {
      for await (const group of grouped(piecesOf(items), mostBytes, ({ json }) => json.length + pieceBytes)) {
        for (const { taskId } of group) await once(outputTableOf(taskId), () => makeTable(database, taskId))
        await writePieces(ask, group)
      }
    },
    recordings: (items) => writeRecordings(ask, items),
    files: (items) => writeFiles(createFiles(database), items),
    async audit(items) {
      for await (const group of grouped(auditRows(items), mostRows)) await writeAudit(ask, group)
    },
    async heads(items) {
      for await (const item of items) await writeHeads(ask, item)
    },
    async presence(items) {
      for await (const group of grouped(items, mostRows)) await writePresence(ask, group)
    },
    async metrics(items) {
      for await (const group of grouped(items, mostRows * 10, ({ lines }) => lines.length)) {
        for (const { day } of group) await once(day, () => ask('select rsm.metrics_day($1)', [day]))
        await writeSamples(ask, group)
      }
    },
  }
}

/** Groups items up to a weight of `most`; a heavier item forms a group of its own. */
async function* grouped<T>(
  items: AsyncIterable<T>,
  most: number,
  weigh: (item: T) => number = () => 1,
): AsyncGenerator<T[]> {
  let group: T[] = []
  let weight = 0
  for await (const item of items) {
    const more = weigh(item)
    if (group.length > 0 && weight + more > most) {
      yield group
      group = []
      weight = 0
    }
    group.push(item)
    weight += more
  }
  if (group.length > 0) yield group
}

async function writeIdentity(ask: Ask, { storeId, lastIds }: Items['identity']): Promise<void> {
  await ask('update rsm.cluster set store_id = $1', [storeId])
  for (const [noun, last] of Object.entries(lastIds))
    if (isNumbered(noun as Noun) && last > 0) await ask(`select setval('rsm.${noun}_ids', $1)`, [last])
}

async function writeRecords(ask: Ask, group: readonly Items['records'][]): Promise<void> {
  const byNoun = new Map<Noun, AnyRecord[]>()
  for (const { noun, record } of group) byNoun.set(noun, [...(byNoun.get(noun) ?? []), record])
  for (const [noun, records] of byNoun)
    await ask(`insert into ${putText(tableOf(noun))}`, putValues(tableOf(noun), records))
}

const executionsText = `with new as (
    insert into rsm.executions(task_id, host_id, position, over_ssh, rec, out_seq, stdout_bytes, stderr_bytes, frames)
    select * from jsonb_to_recordset($1::jsonb) as e(
      t text, h bigint, p int, s bool, r jsonb, q bigint, o bigint, x bigint, n bigint) returning task_id, status)
  ${countText('select task_id, status, 1 from new')}`

async function writeExecutions(ask: Ask, group: readonly Items['executions'][]): Promise<void> {
  const rows = group.map(({ execution, progress }) => ({
    t: execution.taskId,
    h: execution.hostId,
    p: execution.position,
    s: execution.overSsh === true,
    r: execution,
    q: progress?.lastSequence ?? -1,
    o: progress?.stdoutBytes ?? 0,
    x: progress?.stderrBytes ?? 0,
    n: progress?.frames ?? 0,
  }))
  await ask(executionsText, [jsonbSafe(rows)])
}

type Results = Extract<Items['results'], { results: unknown }>

/** Errors: `gone` for damaged results. */
async function* whole(items: AsyncIterable<Items['results']>): AsyncGenerator<Results> {
  for await (const item of items)
    if ('results' in item) yield item
    else throw new RsmError('gone', `the results of task ${item.taskId} are damaged`)
}

async function writeResults(ask: Ask, group: readonly Results[]): Promise<void> {
  await ask(
    'insert into rsm.remains(task_id, script, gates) select * from unnest($1::text[], $2::json[], $3::json[])',
    [
      group.map(({ taskId }) => taskId),
      group.map(({ script }) => JSON.stringify(script)),
      group.map(({ gates }) => (gates ? JSON.stringify(gates) : null)),
    ],
  )
  const rows = group.flatMap(({ taskId, results }) =>
    results.map((result, at) => ({ t: taskId, h: result.hostId, p: at + 1, r: result })),
  )
  for (let at = 0; at < rows.length; at += mostRows)
    await ask(
      `insert into rsm.results(task_id, host_id, position, rec)
      select * from jsonb_to_recordset($1::jsonb) as r(t text, h bigint, p int, r jsonb)`,
      [jsonbSafe(rows.slice(at, at + mostRows))],
    )
}

async function writeVersions(ask: Ask, group: readonly Items['versions'][]): Promise<void> {
  await ask(
    'insert into rsm.script_versions(script_id, version, rec) select * from unnest($1::bigint[], $2::int[], $3::json[])',
    [
      group.map(({ id }) => id),
      group.map(({ version }) => version),
      group.map((script) => JSON.stringify(script)),
    ],
  )
}

type OutputPiece = ReturnType<typeof splitLine> & { readonly taskId: string; readonly id: number }

/**
 * Splits logs into pieces from which a reader can restore the same bytes. Errors: `gone` for a line that it
 * could not restore.
 */
async function* piecesOf(items: AsyncIterable<Items['output']>): AsyncGenerator<OutputPiece> {
  for await (const { blob, bytes } of blobsOf(items)) {
    let id = 0
    for await (const line of linesOf(bytes)) {
      id += line.length + 1
      const isChecked = hasCheck(line)
      const piece = splitLine(withoutCheck(line) ?? line)
      if (
        !isChecked &&
        !lineOfLength(piece, line.length + 1)
          .subarray(0, -1)
          .equals(line)
      )
        throw new RsmError('gone', `the output of task ${blob.id} is damaged: the line before byte ${id}`)
      yield { ...piece, taskId: blob.id, id }
    }
  }
}

const piecesText = `insert into rsm.outputs(task_id, id, host_id, is_stderr, sequence, at, bytes, data, phase)
  select t, id, h, is_stderr, sequence, at, bytes, substr($8::bytea, ends - length + 1, length), phase
  from (select *, (sum(length) over (order by k))::int as ends
    from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bool[], $5::bigint[], $6::bigint[], $7::int[], $9::int[], $10::smallint[])
      with ordinality as p(t, id, h, is_stderr, sequence, at, length, bytes, phase, k)) placed`

const headsText = `insert into rsm.output_heads as h(task_id, last, bytes)
  select t, max(id), sum(bytes) from unnest($1::text[], $2::bigint[], $3::bigint[]) as p(t, id, bytes) group by t
  on conflict (task_id) do update set last = excluded.last, bytes = h.bytes + excluded.bytes`

const textBytes = (json: Uint8Array) =>
  Buffer.byteLength(JSON.parse(Buffer.from(json).toString('utf8')) as string)

async function writePieces(ask: Ask, group: readonly OutputPiece[]): Promise<void> {
  const taskIds = group.map(({ taskId }) => taskId)
  const ids = group.map(({ id }) => id)
  await ask(piecesText, [
    taskIds,
    ids,
    group.map(({ hostId }) => hostId),
    group.map(({ stream }) => stream === 'stderr'),
    group.map(({ sequence }) => sequence),
    group.map(({ timestamp }) => Date.parse(timestamp)),
    group.map(({ json }) => json.length),
    Buffer.concat(group.map(({ json }) => json)),
    group.map(({ json }) => textBytes(json)),
    group.map(({ phase }) => phases.indexOf(phase ?? 'SCRIPT')),
  ])
  await ask(headsText, [taskIds, ids, group.map(({ json }) => json.length + pieceBytes)])
}

async function beginRecording(ask: Ask, { id, bytes }: { id: string; bytes: number }): Promise<number> {
  const [row] = await ask<{ key: number }>(
    `insert into rsm.recordings(id, writer, bytes, packed, changed_at)
    values ($1, nextval('rsm.epochs'), $2, $2, rsm.now()) returning key`,
    [id, bytes],
  )
  return row?.key ?? 0
}

async function writeRecordings(ask: Ask, items: AsyncIterable<Items['recordings']>): Promise<void> {
  for await (const { blob, bytes } of blobsOf(items)) {
    const key = await beginRecording(ask, blob)
    let start = 0
    for await (const piece of bytes)
      for (let at = 0; at < piece.length; at += chunkBytes) {
        const data = piece.subarray(at, at + chunkBytes)
        const values = [key, start, data]
        await ask('insert into rsm.recording_chunks(recording, start, data) values ($1, $2, $3)', values)
        start += data.length
      }
  }
}

async function writeAudit(ask: Ask, group: readonly AuditRow[]): Promise<void> {
  await ask(
    'insert into rsm.audit(id, line, damaged) select * from unnest($1::bigint[], $2::text[], $3::bytea[])',
    [group.map(({ id }) => id), group.map(({ line }) => line), group.map(({ damaged }) => damaged)],
  )
}

async function writeHeads(ask: Ask, { head, noted }: Items['heads']): Promise<void> {
  await ask('update rsm.audit_head set id = $1, hash = $2', [head.id, head.hash])
  if (noted)
    await ask(`insert into rsm.audit_noted(id, hash, at, server) values ($1, $2, rsm.now(), 'migrate')`, [
      noted.id,
      noted.hash,
    ])
}

/** State without a link: any later one is newer. */
function patchOf(known: LastKnown): HostPatch {
  const { status, reason, agentStatus, says, warns, revoked, greeting } = known
  const timeOf = (text: string | null) => (text === null ? null : Date.parse(text))
  return {
    beat: { at: timeOf(known.lastHeartbeatAt), agentStatus, uptime: null, says, clockOffset: null },
    link: {
      epoch: 0,
      server: 0,
      isUp: false,
      lostAt: timeOf(known.linkLostAt),
      fault: says.linkFault ?? null,
    },
    load: { at: null, warns, high: [], highSince: {} },
    marks: { duplicate: false, revoked },
    greeting,
    standing: { status, reason },
  }
}

async function writePresence(ask: Ask, group: readonly LastKnown[]): Promise<void> {
  const patches = group.map(patchOf)
  await ask(
    `insert into rsm.presence(host_id, heard_at, ${parts.join(', ')})
    select * from unnest($1::bigint[], $2::bigint[], ${parts.map((_, at) => `$${at + 3}::text[]`).join(', ')})`,
    [
      group.map(({ hostId }) => hostId),
      patches.map(({ beat }) => beat.at),
      ...parts.map((part) => patches.map((patch) => JSON.stringify(patch[part]))),
    ],
  )
}

async function writeSamples(ask: Ask, group: readonly Items['metrics'][]): Promise<void> {
  const packed = await Promise.all(
    group.map(async ({ lines }) => {
      const rows = lines.flatMap((line) => parseSample(line) ?? [])
      const times = rows.map(({ numbers }) => numbers[0] ?? 0).sort((a, b) => a - b)
      return { first: times[0] ?? 0, last: times.at(-1) ?? 0, data: await packSamples(rows) }
    }),
  )
  await ask(
    `insert into rsm.metrics_packed(day, host_id, first, last, data)
    select * from unnest($1::date[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[])`,
    [
      group.map(({ day }) => day),
      group.map(({ hostId }) => hostId),
      packed.map(({ first }) => first),
      packed.map(({ last }) => last),
      packed.map(({ data }) => data),
    ],
  )
}
