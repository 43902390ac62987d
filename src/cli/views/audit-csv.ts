import type { AuditEntry } from '../../core/audit.ts'
import { jsonText } from '../text/sanitize.ts'

type Cell = string | number | null

const columns: Readonly<Record<string, (entry: AuditEntry) => Cell>> = {
  id: ({ id }) => id,
  at: ({ at }) => at,
  actorType: ({ actor }) => actor.type,
  actorId: ({ actor }) => actor.id,
  actorName: ({ actor }) => actor.name,
  tokenId: ({ actor }) => actor.tokenId,
  ip: ({ ip }) => ip,
  action: ({ action }) => action,
  objectType: ({ object }) => object?.type ?? null,
  objectId: ({ object }) => object?.id ?? null,
  objectName: ({ object }) => object?.name ?? null,
  outcome: ({ outcome }) => outcome,
  detail: ({ detail }) => jsonText(detail),
  hash: ({ hash }) => hash,
}

/** RFC 4180. A ' before text that spreadsheets would treat as a formula, because names are untrusted. */
function cellOf(value: Cell): string {
  if (value === null) return ''
  const text = String(value)
  const plain = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

const row = (cells: readonly Cell[]) => `${cells.map(cellOf).join(',')}\n`

export const auditCsvHeader = row(Object.keys(columns))

/** CSV row of a log line; empty if the line is not an entry. */
export function auditCsvRow(line: string): string {
  try {
    const entry = JSON.parse(line) as AuditEntry
    return row(Object.values(columns).map((cell) => cell(entry)))
  } catch {
    return ''
  }
}
