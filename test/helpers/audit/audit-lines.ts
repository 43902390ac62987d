import { type AuditFacts, type AuditHead, beforeFirst, chainEntry } from '../../../src/core/audit.ts'
import { sha256 } from '../../../src/disk/digest.ts'

export const facts = (more: Partial<AuditFacts> = {}): AuditFacts => ({
  at: '2026-11-21T08:00:00.000Z',
  actor: { type: 'user', id: 1, name: 'admin', tokenId: 2 },
  ip: '127.0.0.1',
  action: 'host.create',
  object: { type: 'host', id: 7, name: 'web1' },
  outcome: 'SUCCESS',
  detail: { requestId: 'r', status: 201 },
  ...more,
})

/** A valid log of `count` entries, as lines; `heads[n]` is the head after the first n entries. */
export function chain(
  count: number,
  factsOf: (at: number) => AuditFacts = () => facts(),
): { lines: string[]; heads: AuditHead[] } {
  const heads: AuditHead[] = [beforeFirst]
  const lines: string[] = []
  for (let at = 0; at < count; at++) {
    const { line, entry } = chainEntry(heads[at] ?? beforeFirst, factsOf(at), sha256)
    lines.push(line)
    heads.push({ id: entry.id, hash: entry.hash })
  }
  return { lines, heads }
}
