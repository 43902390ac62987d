import type { AuditDetail, AuditFacts } from '../../../core/audit.ts'
import type { AuditEvent } from '../ports/audit-log.ts'
import { commandFields } from './task-facts.ts'

/** Bounds of one entry, so that no request writes more than some KiB into the log. */
const longestText = 1024
const mostFields = 64
const mostItems = 64
const longestDetail = 32 * 1024

const short = (text: string) => (text.length <= longestText ? text : `${text.slice(0, longestText)}…`)
const shortOrNull = <T extends string | number | null>(value: T) =>
  typeof value === 'string' ? (short(value) as T) : value

/** The event without commands and first lines of scripts (`--no-audit-commands`). */
export function withoutCommands(event: AuditEvent): AuditEvent {
  const detail = { ...event.detail }
  for (const field of commandFields) delete detail[field]
  return { ...event, detail }
}

/** The event with every text and list cut to its bound. */
export function bounded({ at = '', actor, ip, action, object, outcome, detail }: AuditEvent): AuditFacts {
  return {
    at,
    actor: { ...actor, id: shortOrNull(actor.id), name: shortOrNull(actor.name) },
    ip,
    action: short(action),
    object: object && { type: object.type, id: shortOrNull(object.id), name: shortOrNull(object.name) },
    outcome,
    detail: boundedDetail(detail),
  }
}

function boundedDetail(detail: AuditDetail): AuditDetail {
  const fields = Object.entries(detail).slice(0, mostFields)
  const kept: AuditDetail = Object.fromEntries(
    fields.map(([name, value]) => [
      short(name),
      typeof value === 'string'
        ? short(value)
        : Array.isArray(value)
          ? value.slice(0, mostItems).map((item) => item.slice(0, 256))
          : value,
    ]),
  )
  return JSON.stringify(kept).length > longestDetail ? { tooLong: true, fields: Object.keys(kept) } : kept
}
