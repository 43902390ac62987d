import test from 'ava'
import fc from 'fast-check'
import { beforeFirst, chainEntry } from '../../../../../src/core/audit.ts'
import { sha256 } from '../../../../../src/disk/digest.ts'
import { type AuditRow, auditRows } from '../../../../../src/server/storage/postgres/streams/audit-rows.ts'

const actor = { type: 'system', id: null, name: null, tokenId: null } as const
const facts = { at: '2026-01-01T00:00:00.000Z', actor, ip: null, object: null, outcome: 'SUCCESS' } as const
/** The line of the entry with this id. */
const entry = (id: number, detail: string) =>
  chainEntry({ ...beforeFirst, id: id - 1 }, { ...facts, action: 'test', detail: { detail } }, sha256).line

async function* inBlocks(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function rowsOf(lines: readonly (string | Buffer)[], size = 7): Promise<AuditRow[]> {
  const rows: AuditRow[] = []
  const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))
  for await (const row of auditRows(inBlocks(bytes, size))) rows.push(row)
  return rows
}

const bytesOf = (rows: readonly AuditRow[]) =>
  Buffer.concat(rows.flatMap(({ line, damaged }) => [damaged ?? Buffer.from(line ?? ''), Buffer.from('\n')]))

test('each entry is a row; a broken line takes the place of a missing entry or joins the row before', async (t) => {
  const [one, two, four] = [entry(1, 'ä'), entry(2, 'b'), entry(4, 'c')]
  const broken = Buffer.from([0x7b, 0xff, 0x00, 0x22])
  const shown = async (...lines: (string | Buffer)[]) =>
    (await rowsOf(lines)).map(({ id, line }) => [id, line])
  t.deepEqual(await shown(one, two), [
    [1, one],
    [2, two],
  ])
  t.deepEqual(await shown(one, two, broken, four), [
    [1, one],
    [2, two],
    [3, null],
    [4, four],
  ])
  t.deepEqual(await shown(one, broken, '', two), [
    [1, null],
    [2, two],
  ])
  t.deepEqual(await shown(broken, two), [
    [1, null],
    [2, two],
  ])
  t.deepEqual(await shown(broken, one, two), [
    [1, null],
    [2, two],
  ])
  const invalid = Buffer.from(entry(3, 'x').replace('"x"', '"\u00e9"'), 'latin1')
  t.deepEqual(await shown(two, invalid, four), [
    [2, two],
    [3, null],
    [4, four],
  ])
})

test('rows contain all lines of a log byte for byte, and ids ascend', async (t) => {
  const line = fc.oneof(
    fc.integer({ min: 1, max: 12 }).map((id) => Buffer.from(entry(id, 'ö'))),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10))),
  )
  const lines = fc.array(line, { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(lines, fc.integer({ min: 1, max: 99 }), async (some, size) => {
      // A log ends with the entry that has its highest id.
      const all = [...some, Buffer.from(entry(13, 'end'))]
      const rows = await rowsOf(all, size)
      const expected = Buffer.concat(all.flatMap((one) => [one, Buffer.from('\n')]))
      t.deepEqual(bytesOf(rows), expected)
      t.true(rows.every(({ id }, at) => id > (rows[at - 1]?.id ?? 0)))
      t.is(rows.at(-1)?.id, 13)
    }),
    { numRuns: 200 },
  )
})

test('a log that ends with an entry of an earlier id is refused', async (t) => {
  await t.throwsAsync(rowsOf([entry(1, ''), entry(2, ''), entry(1, '')]), {
    message: 'the audit log ends with entry 1, but entry 2 comes before it',
  })
})
