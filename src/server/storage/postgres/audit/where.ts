import type { AuditFilter } from '../../../../core/audit.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { unreadableAction } from '../../audit/stored-entry.ts'

/** Conditions on rows of the log, and the values that they refer to by number. */
export interface Where {
  readonly conditions: string[]
  readonly values: unknown[]
}

const isUnreadable = 'not rsm.audit_is_entry(id, line, at, action)'

/** Whether a filter lets everything through. */
export const isEmpty = (filter: AuditFilter): boolean =>
  Object.values(filter).every((value) => value === undefined)

/** Adds what lets the entries of a filter through. */
export function addFilter(where: Where, filter: AuditFilter): void {
  const { conditions, values } = where
  const json = (text: string) => `rsm.audit_json($${values.push(JSON.stringify(text))})`
  const add = (column: string, operator: string, text: string | undefined) => {
    if (text !== undefined) conditions.push(`${column} ${operator} ${json(text)}`)
  }
  const time = (text: string | undefined) => (text === undefined ? undefined : isoTime(Date.parse(text)))
  const { action, actor, objectType, objectId, outcome, from, to } = filter
  if (action === unreadableAction) conditions.push(isUnreadable)
  else add('action', '=', action)
  add('actor', '=', actor)
  add('object_type', '=', objectType)
  // An id may be a number in the entry.
  if (objectId !== undefined) {
    const bare = /^-?\d+$/.test(objectId) ? `, $${values.push(objectId)}` : ''
    conditions.push(`object_id in (${json(objectId)}${bare})`)
  }
  add('outcome', '=', outcome)
  add('at', '>=', time(from))
  add('at', '<=', time(to))
}
