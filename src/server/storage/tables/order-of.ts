import { type AnyRecord, type Noun, orders } from '../records/records.ts'
import { byId, type Compare } from './ordered-records.ts'

/** How the records of a noun are compared in this order; by id unless it is one of records.ts. */
export function orderOf(noun: Noun, order: string): Compare<AnyRecord> {
  const named: Partial<Record<string, Record<string, { compare: unknown }>>> = orders
  return (named[noun]?.[order]?.compare as Compare<AnyRecord> | undefined) ?? byId
}
