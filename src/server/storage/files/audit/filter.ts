import type { AuditEntry, AuditFilter } from '../../../../core/audit.ts'
import { unreadableAction } from '../../audit/stored-entry.ts'

/** Whether an entry is one of those. */
export function matcherOf({ action, actor, objectType, objectId, outcome, from, to }: AuditFilter) {
  const [since, until] = [from, to].map((time) => (time === undefined ? null : Date.parse(time)))
  return (entry: AuditEntry): boolean => {
    const at = Date.parse(entry.at)
    return (
      (action === undefined || entry.action === action) &&
      (actor === undefined || entry.actor.name === actor) &&
      (objectType === undefined || entry.object?.type === objectType) &&
      (objectId === undefined || (entry.object !== null && String(entry.object.id) === objectId)) &&
      (outcome === undefined || entry.outcome === outcome) &&
      (since == null || at >= since) &&
      (until == null || at <= until)
    )
  }
}

/** Texts that stand in every line that matches: most lines need not be parsed. */
export function marksOf({ action, actor, outcome }: AuditFilter): Buffer[] {
  const mark = (name: string, value: string) => Buffer.from(`"${name}":${JSON.stringify(value)}`)
  const found: Buffer[] = []
  if (action !== undefined && action !== unreadableAction) found.push(mark('action', action))
  if (actor !== undefined) found.push(mark('name', actor))
  if (outcome !== undefined && outcome !== 'FAILED') found.push(mark('outcome', outcome))
  return found
}
