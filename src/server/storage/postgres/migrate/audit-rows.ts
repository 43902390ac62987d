import { RsmError } from '../../../../core/errors.ts'
import { parseEntry } from '../../audit/entry.ts'
import { linesOf, newline } from '../../migrate/bytes.ts'

/** A row of rsm.audit: a line that is an entry, or bytes that are none. */
export interface AuditRow {
  readonly id: number
  readonly line: string | null
  readonly damaged: Buffer | null
}

const endOfLine = Buffer.of(newline)

/** The text of an entry, where PostgreSQL takes it as it is. */
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

/** An entry and what follows on it; `id` is 0 for what stands before the first one. */
interface Stretch {
  readonly id: number
  readonly lines: Buffer[]
}

/** The rows of a stretch. What is no entry takes the place of one that is missing before `next`, if one is. */
function rowsOf({ id, lines }: Stretch, next: number): AuditRow[] {
  const [entry, ...strays] = lines
  if (id === 0) return [rowOf(next - 1, lines)]
  if (!entry || strays.length === 0 || next === id + 1) return [rowOf(id, lines)]
  return [rowOf(id, [entry]), rowOf(id + 1, strays)]
}

/**
 * The rows that hold all lines of a log, byte for byte. Errors: `conflict` where its last entry is not the one with the
 * highest id, behind which the next one would have to stand.
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
      `the audit log ends with entry ${last}, which stands behind entry ${stretch.id}`,
      {
        hint: 'see what `rsm server doctor` and `rsm audit verify` say of it',
      },
    )
  if (stretch.id > 0) yield rowOf(stretch.id, stretch.lines)
}
