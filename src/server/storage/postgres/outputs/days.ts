import { firstDigits, timeOfId } from '../../ids.ts'
import type { Database } from '../connection/database.ts'

/** Milliseconds. */
export const dayLength = 24 * 3600_000
/** The last millisecond of the year 9999. */
const latest = 253_402_300_799_999

/** A table with the output of the tasks whose ids were made on one day (UTC): those from `from` on, below `to`. */
export interface Day {
  readonly table: string
  readonly from: string
  readonly to: string
}

/** Where what is no id of a task has its output, as only tests have it. */
const otherTable = 'rsm.outputs_other'

/** The day whose table has a task's output; null where it is that of no day. */
export function dayOf(taskId: string): Day | null {
  const made = timeOfId(taskId)
  return made === null || made > latest ? null : dayAt(made)
}

/** `time`: milliseconds since 1970. */
export function dayAt(time: number): Day {
  const begin = Math.floor(time / dayLength) * dayLength
  const name = new Date(begin).toISOString().slice(0, 10).replaceAll('-', '')
  return { table: `rsm.outputs_${name}`, from: firstDigits(begin), to: firstDigits(begin + dayLength) }
}

export const tableOf = (taskId: string): string => dayOf(taskId)?.table ?? otherTable

/** No task gets an id of this day any more, whose clock ever a server goes by; `now`: milliseconds since 1970. */
export const isOver = ({ to }: Day, now: number): boolean => to <= firstDigits(now - dayLength)

/** The day has no table: it has none yet, or it is gone. */
export const isWithoutTable = (error: unknown): boolean => (error as { code?: string }).code === '42P01'

/** SQLSTATEs of a table that exists already: `if not exists` checks before it waits for the other server. */
const made = new Set(['42P07', '23505', '42710'])

// None of the three comes from elsewhere.
export const textOfTable = ({ table, from, to }: Day): string =>
  `create table if not exists ${table} partition of rsm.outputs for values from ('${from}') to ('${to}')`

/** Ignores the error of `textOfTable` where another server has made the table a moment earlier. */
export function unlessMade(error: { code?: string }): void {
  if (!made.has(error.code ?? '')) throw error
}

/** Makes the table for a task's output. */
export async function makeTable(database: Database, taskId: string): Promise<void> {
  const its = dayOf(taskId)
  if (its === null) return
  await database.ask('write', textOfTable(its)).catch(unlessMade)
}
