import { indexes, type Noun, nouns, orders, type Records } from '../../seams/records.ts'
import { byId, type Compare } from './ordered-records.ts'

export type AnyRecord = Records[Noun]
export type Id = string | number
export type Key = string | number

export interface Index {
  name: string
  unique: boolean
  key(record: AnyRecord): Key | null
}

/** The indexes of a noun, seen without the noun's type: a record is only ever given to the indexes of its own noun. */
export const indexList: Record<Noun, readonly Index[]> = Object.fromEntries(
  nouns.map((noun) => [
    noun,
    Object.entries(indexes[noun]).map(([name, index]) => ({ name, ...(index as Omit<Index, 'name'>) })),
  ]),
) as unknown as Record<Noun, readonly Index[]>

/** How the records of a noun are compared in this order; by id unless it is one of records.ts. */
export function orderOf(noun: Noun, order: string): Compare<AnyRecord> {
  const named: Partial<Record<string, Record<string, unknown>>> = orders
  return (named[noun]?.[order] as Compare<AnyRecord> | undefined) ?? byId
}
