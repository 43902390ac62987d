import { RsmError } from '../../../core/errors.ts'
import { type Files, WrongOffset } from '../ports/files.ts'
import type { Database } from './connection/database.ts'

/** Bytes per row. */
const chunkBytes = 1024 * 1024
/** Rows removed per statement. */
const clearedAtOnce = 64

const statement = (name: string, text: string) => ({ name: `files ${name}`, text })

const sizeOf = statement(
  'size',
  'select c.size from rsm.file_places p join rsm.file_contents c on c.id = p.content_id where p.id = $1',
)
const begin = statement(
  'begin',
  `with made as (insert into rsm.file_contents(size) select 0 where not exists (select from rsm.file_places where id = $1) returning id)
  insert into rsm.file_places(id, content_id) select $1, id from made on conflict do nothing`,
)
// The size guards the append: at another offset, or after another writer, nothing changes.
const add = statement(
  'add',
  `with grown as (
    update rsm.file_contents c set size = c.size + length($3::bytea) from rsm.file_places p
    where p.id = $1 and c.id = p.content_id and c.size = $2 and c.sha256 is null returning c.id)
  insert into rsm.file_chunks(content_id, start, data) select id, $2, $3::bytea from grown returning 1 as added`,
)
const cut = statement(
  'cut',
  `with shrunk as (
    update rsm.file_contents c set size = $3 from rsm.file_places p
    where p.id = $1 and c.id = p.content_id and c.size = $2 and c.sha256 is null returning c.id),
  dropped as (delete from rsm.file_chunks d using shrunk where d.content_id = shrunk.id and d.start >= $3),
  shortened as (
    update rsm.file_chunks d set data = substring(d.data for ($3 - d.start)::integer) from shrunk
    where d.content_id = shrunk.id and d.start < $3 and d.start + length(d.data) > $3)
  select 1 as cut from shrunk`,
)
const next = statement(
  'read',
  `select c.start, c.data from rsm.file_chunks c join rsm.file_places p on p.content_id = c.content_id
  where p.id = $1 and c.start <= $2 order by c.start desc limit 1`,
)

const gone = (id: string) => new RsmError('gone', `the bytes of file ${id} are not in the store`)

/** Regroups pieces into chunks of `chunkBytes`. If the source fails, yields the received bytes before its error. */
async function* inChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafeSlow(chunkBytes)
  let length = 0
  let fault: { error: unknown } | null = null
  try {
    for await (const piece of bytes)
      for (let at = 0; at < piece.length; ) {
        const taken = piece.subarray(at, at + chunkBytes - length)
        chunk.set(taken, length)
        length += taken.length
        at += taken.length
        if (length < chunkBytes) continue
        yield chunk
        length = 0
      }
  } catch (error) {
    fault = { error }
  }
  if (length > 0) yield chunk.subarray(0, length)
  if (fault !== null) throw fault.error
}

/** Bytes of files as rows, which finished files with equal bytes share. */
export function createFiles(database: Database): Files {
  /** Removes rows without a file. */
  async function clear(): Promise<void> {
    for (;;) {
      const [row] = await database.ask<{ more: boolean }>('api', 'select rsm.file_clear($1) as more', [
        clearedAtOnce,
      ])
      if (row?.more !== true) return
    }
  }

  async function size(id: string): Promise<number> {
    const [row] = await database.ask<{ size: number }>('api', sizeOf, [id])
    return row?.size ?? 0
  }

  return {
    size,
    async append(id, offset, bytes) {
      if (offset === 0) await database.ask('api', begin, [id])
      let end = offset
      for await (const chunk of inChunks(bytes)) {
        const rows = await database.ask('api', add, [id, end, chunk])
        if (rows.length === 0) throw new WrongOffset(await size(id))
        end += chunk.length
      }
      // Without any bytes, `offset` was not checked yet.
      const stored = await size(id)
      if (stored < end || (end === offset && stored !== end)) throw new WrongOffset(stored)
      return end
    },
    async cut(id, end, to) {
      const rows = await database.ask('api', cut, [id, end, to])
      if (rows.length === 0) throw new WrongOffset(await size(id))
    },
    async finish(id, content) {
      await database.ask('api', begin, [id])
      if (content === null) return
      await database.ask('api', 'select rsm.file_share($1, $2)', [id, content])
      await clear()
    },
    async *read(id, from, to) {
      for (let at = from; at < to; ) {
        const [row] = await database.ask<{ start: number; data: Buffer }>('api', next, [id, at])
        const piece = row?.data.subarray(at - row.start, to - row.start)
        if (piece === undefined || piece.length === 0) throw gone(id)
        yield piece
        at += piece.length
      }
    },
    async remove(id) {
      await database.ask('api', 'select rsm.file_remove($1)', [id])
      await clear()
    },
    // The disk belongs to PostgreSQL, so that its free space is unknown.
    room: () => Promise.resolve(null),
    async ids() {
      const rows = await database.ask<{ id: string }>('api', 'select id from rsm.file_places order by id')
      return rows.map((row) => row.id)
    },
  }
}
