import { RsmError } from '../../../../core/errors.ts'
import { parseEntry } from '../../audit-entry.ts'
import { linesOf, newline } from '../../streams.ts'

/** A row of rsm.audit: the line of an entry, or other bytes. */
export interface AuditRow {
  readonly id: number
  readonly line: string | null
  readonly damaged: Buffer | null
}

const endOfLine = Buffer.of(newline)

/** Text of an entry; null if PostgreSQL cannot store it unchanged, or it is not this entry. */
function textOf(id: number, line: Buffer): string | null {
  const text = line.toString('utf8')
  const isSame = !text.includes('\0') && Buffer.from(text).equals(line)
  return isSame && parseEntry(text)?.id === id ? text : null
}

function rowOf(id: number, lines: readonly Buffer[]): AuditRow {
  const [first] = lines
  const line = lines.length === 1 && first ? textOf(id, first) : null
  const bytes = lines.flatMap((one, at) => (at === 0 ? [one] : [endOfLine, one]))
  return { id, line, damaged: line === null ? Buffer.concat(bytes) : null }
}

/** An entry and the stray lines after it; `id` is 0 for lines before the first entry. */
interface Stretch {
  readonly id: number
  readonly lines: Buffer[]
}

/** Rows of a stretch. Stray lines take the id of an entry missing before `next`, if there is one. */
function rowsOf({ id, lines }: Stretch, next: number): AuditRow[] {
  const [entry, ...strays] = lines
  if (id === 0) return [rowOf(next - 1, lines)]
  if (!entry || strays.length === 0 || next === id + 1) return [rowOf(id, lines)]
  return [rowOf(id, [entry]), rowOf(id + 1, strays)]
}

/**
 * Turns a log into rows that preserve it byte for byte. Errors: `conflict` if its last entry does not have
 * the highest id, because new entries follow the highest id.
 */
export async function* auditRows(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<AuditRow> {
  let stretch: Stretch = { id: 0, lines: [] }
  let last = 0
  for await (const line of linesOf(bytes)) {
    const id = parseEntry(line)?.id ?? 0
    if (id > 0) last = id
    const { lines } = stretch
    if (id <= stretch.id) lines.push(line)
    // No row comes before the first entry.
    else if (stretch.id === 0 && (lines.length === 0 || id === 1)) stretch = { id, lines: [...lines, line] }
    else {
      yield* rowsOf(stretch, id)
      stretch = { id, lines: [line] }
    }
  }
  if (last !== stretch.id)
    throw new RsmError(
      'conflict',
      `the audit log ends with entry ${last}, but entry ${stretch.id} comes before it`,
      {
        hint: 'check it with `rsm server doctor` and `rsm audit verify`',
      },
    )
  if (stretch.id > 0) yield rowOf(stretch.id, stretch.lines)
}
