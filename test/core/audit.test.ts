import test from 'ava'
import fc from 'fast-check'
import {
  type AuditFault,
  type AuditHead,
  AuditVerifier,
  parseHead,
  showHead,
  verifyAudit,
} from '../../src/core/audit.ts'
import { sha256 } from '../../src/disk/digest.ts'
import { chain, facts } from '../helpers/audit/audit-lines.ts'

async function* pieces(log: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < log.length; at += size) yield log.subarray(at, at + size)
}

function check(log: Buffer, noted: AuditHead | null = null, size = 100): Promise<AuditFault | null> {
  return verifyAudit(pieces(log, size), new AuditVerifier(sha256, noted))
}

const text = (lines: readonly string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''))
const anyText = fc.string({ unit: 'binary', maxLength: 30 })
/** Logs of various lengths and content, with any text. */
const logs = fc.array(fc.tuple(anyText, anyText), { minLength: 2, maxLength: 12 }).map((names) =>
  chain(names.length, (at) =>
    facts({
      action: names[at]?.[0] ?? '',
      object: { type: 'script', id: at, name: names[at]?.[1] ?? null },
      detail: { message: names[at]?.[1] ?? '', changed: ['a', 'b'] },
    }),
  ),
)
/** Maps a drawn number to one below `bound`. */
const below = (drawn: number, bound: number) => drawn % bound

test('an unchanged log is sound, however its bytes are split, with any head of its own', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      logs,
      fc.nat(),
      fc.integer({ min: 1, max: 500 }),
      async ({ lines, heads }, drawn, size) => {
        const verifier = new AuditVerifier(sha256, heads[1 + below(drawn, lines.length)] ?? null)
        t.is(await verifyAudit(pieces(text(lines), size), verifier), null)
        t.is(verifier.entries, lines.length)
        t.deepEqual(verifier.head, heads.at(-1))
      },
    ),
  )
})

test('S11 any single changed byte is found in its line', async (t) => {
  await fc.assert(
    fc.asyncProperty(logs, fc.nat(), fc.integer({ min: 1, max: 255 }), async ({ lines }, drawn, flip) => {
      const log = text(lines)
      const at = below(drawn, log.length)
      const line = log.subarray(0, at).filter((byte) => byte === 10).length + 1
      log[at] = (log[at] ?? 0) ^ flip
      const fault = await check(log)
      t.is(fault?.line, line, fault?.sentence)
      t.true(fault?.sentence.includes(`line ${line} `))
    }),
    { numRuns: 300 },
  )
})

test('S11 any removed line is found at its place', async (t) => {
  await fc.assert(
    fc.asyncProperty(logs, fc.nat(), async ({ lines }, drawn) => {
      const at = below(drawn, lines.length - 1)
      const fault = await check(text(lines.toSpliced(at, 1)))
      t.is(fault?.kind, 'removed')
      t.is(fault?.line, at + 1)
      t.is(
        fault?.sentence,
        `line ${at + 1} holds entry ${at + 2}: entry ${at + 1} is missing before it, or its id was changed`,
      )
    }),
  )
})

test('S11 swapped and repeated lines are found', async (t) => {
  const { lines } = chain(6)
  const [first = '', second = '', third = ''] = lines
  const swapped = await check(text([first, third, second, ...lines.slice(3)]))
  t.like(swapped, { kind: 'removed', line: 2, id: 3 })
  const twice = await check(text([first, second, second, ...lines.slice(2)]))
  t.like(twice, { kind: 'repeated', line: 3, id: 2 })
})

test('S11 a forged entry with a matching hash breaks the next entry', async (t) => {
  const honest = chain(5)
  const forged = chain(3, (at) => facts(at === 2 ? { action: 'nothing.happened' } : {}))
  const fault = await check(text([...forged.lines, ...honest.lines.slice(3)]))
  t.like(fault, { kind: 'changed', line: 4, id: 4 })
})

test('S11 a truncated end is found only with a head noted earlier', async (t) => {
  await fc.assert(
    fc.asyncProperty(logs, fc.nat(), async ({ lines, heads }, drawn) => {
      const kept = 1 + below(drawn, lines.length - 1)
      const log = text(lines.slice(0, kept))
      t.is(await check(log), null)
      const fault = await check(log, heads.at(-1))
      t.is(fault?.kind, 'cut')
      t.is(
        fault?.sentence,
        `the log ends at entry ${kept}, the head noted has ${lines.length}: its end was cut off`,
      )
    }),
  )
})

test('S11 a completely rewritten log is found with a head noted earlier', async (t) => {
  const honest = chain(5)
  const forged = chain(5, () => facts({ action: 'nothing.happened' }))
  t.is(await check(text(forged.lines)), null)
  t.like(await check(text(forged.lines), honest.heads[3] ?? null), { kind: 'rewritten', line: 3, id: 3 })
})

test('S11 an empty log, and a log that ends in the middle of a line, are faults', async (t) => {
  const { lines } = chain(3)
  t.like(await check(Buffer.alloc(0)), { kind: 'cut', line: null })
  t.like(await check(text(lines).subarray(0, -1)), { kind: 'torn', line: 3 })
})

test('S11 a file without newlines is reported as unreadable before it fills the memory', async (t) => {
  async function* endless() {
    for (;;) yield Buffer.alloc(64 * 1024, 'x')
  }
  t.like(await verifyAudit(endless(), new AuditVerifier(sha256)), { kind: 'unreadable', line: 1 })
})

test('a shown head is parsed to the same head', (t) => {
  const head = { id: 57, hash: 'ab'.repeat(32) }
  t.deepEqual(parseHead(showHead(head)), head)
  for (const wrong of ['', '57', '57:ab', `0:${head.hash}`, `x:${head.hash}`, `57:${head.hash}0`])
    t.is(parseHead(wrong), undefined)
})
