import type { AuditEntry, AuditHead } from '../../../core/audit.ts'

/** The entry of a line; null where it is none. */
export function entryOf(
  line: Uint8Array,
): Pick<AuditEntry, 'id' | 'hash' | 'at' | 'action' | 'outcome'> | null {
  try {
    const entry = JSON.parse(Buffer.from(line).toString('utf8')) as Partial<AuditEntry> | null
    const { id, hash, at, action, outcome } = entry ?? {}
    if (!Number.isSafeInteger(id) || typeof hash !== 'string' || typeof at !== 'string') return null
    if (typeof action !== 'string' || outcome === undefined) return null
    return { id: id as number, hash, at, action, outcome }
  } catch {
    return null
  }
}

/** The lines of a block, without their newlines. */
export function linesOf(block: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let from = 0, end = block.indexOf(10); end !== -1; from = end + 1, end = block.indexOf(10, from))
    lines.push(block.subarray(from, end))
  return lines
}

/** The last entry of a block of lines; null where none is an entry. */
export function headOf(block: Buffer): AuditHead | null {
  for (let end = block.lastIndexOf(10); end > 0; ) {
    const before = block.lastIndexOf(10, end - 1)
    const entry = entryOf(block.subarray(before + 1, end))
    if (entry !== null) return { id: entry.id, hash: entry.hash }
    end = before
  }
  return null
}
