import type { AuditActor, AuditDetail, AuditEntry, AuditFacts } from '../../../core/audit.ts'
import type { AuditEvent, AuditLog } from '../ports/audit-log.ts'
import type { Caller } from '../ports/caller.ts'
import type { Store } from '../ports/store.ts'
import { commandFields } from './task-facts.ts'

/** Limits of one entry, so that no request writes more than some KiB to the log. */
const longestText = 1024
const mostFields = 64
const mostItems = 64
const longestDetail = 32 * 1024

/** Event with every text and list cut to its limit. */
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

const short = (text: string) => (text.length <= longestText ? text : `${text.slice(0, longestText)}…`)
const shortOrNull = <T extends string | number | null>(value: T) =>
  typeof value === 'string' ? (short(value) as T) : value

/** Event without commands and first lines of scripts (`--no-audit-commands`). */
export function withoutCommands(event: AuditEvent): AuditEvent {
  const detail = { ...event.detail }
  for (const field of commandFields) delete detail[field]
  return { ...event, detail }
}

/** Entry of a stored line, or null for an invalid one. */
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

/** Replaces an unreadable line, so that lists work even if the log is damaged. `place` is its location. */
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

export const systemActor: AuditActor = { type: 'system', id: null, name: null, tokenId: null }
const anonymous: AuditActor = { type: 'anonymous', id: null, name: null, tokenId: null }

export async function actorOf(caller: Caller | undefined, store: Store): Promise<AuditActor> {
  switch (caller?.type) {
    case undefined:
      return anonymous
    case 'user':
      return { type: 'user', id: caller.id, name: caller.username, tokenId: caller.tokenId }
    case 'agent':
      return { type: 'agent', id: caller.agentId, name: caller.agentId, tokenId: null }
    case 'enrollment': {
      const name = (await store.get('enrollments', caller.id))?.name ?? null
      return { type: 'enrollment', id: caller.id, name, tokenId: null }
    }
  }
}

/** Records a command on the server's machine, with the system as its actor. */
export const recordForSystem = (
  audit: Pick<AuditLog, 'append'>,
  action: string,
  detail: AuditDetail,
  outcome: 'SUCCESS' | 'FAILED' = 'SUCCESS',
) => audit.append({ actor: systemActor, ip: null, action, object: null, outcome, detail })
