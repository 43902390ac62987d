import type { AuditDetail, AuditEntry } from '../../../core/audit.ts'

/** The entry of a stored line, or null where it is none. */
export function parseEntry(line: Buffer | string): AuditEntry | null {
  try {
    const value = JSON.parse(line.toString()) as AuditEntry | null
    const fits =
      typeof value === 'object' &&
      value !== null &&
      Number.isSafeInteger(value.id) &&
      typeof value.at === 'string' &&
      typeof value.action === 'string' &&
      typeof value.hash === 'string' &&
      typeof value.actor === 'object' &&
      value.actor !== null
    return fits ? value : null
  } catch {
    return null
  }
}

export const unreadableAction = 'audit.unreadable'

/** What a line that is no entry is shown as: a list never fails because someone damaged the log. `place` says where it is. */
export function unreadableEntry(id: number, place: AuditDetail): AuditEntry {
  return {
    id,
    at: new Date(0).toISOString(),
    actor: { type: 'system', id: null, name: null, tokenId: null },
    ip: null,
    action: unreadableAction,
    object: null,
    outcome: 'FAILED',
    detail: place,
    hash: '',
  }
}
