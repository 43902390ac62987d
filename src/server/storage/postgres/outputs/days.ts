import { type Clock, repeat } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { firstDigits, timeOfId } from '../../ids.ts'
import { type Database, withBriefLocks } from '../connection/database.ts'

/** Milliseconds. */
const dayLength = 24 * 3600_000
/** The last millisecond of the year 9999. */
const latest = 253_402_300_799_999

/** The table for output under ids that are not task ids, which only tests use. */
const otherTable = 'rsm.outputs_other'

/** SQLSTATEs of a table that exists already: `if not exists` checks before it waits for the other server. */
const made = new Set(['42P07', '23505', '42710'])

/** A table with the output of the tasks whose ids were made on one day (UTC): those from `from` on, below `to`. */
interface Day {
  readonly table: string
  readonly from: string
  readonly to: string
}

/** The day whose table has a task's output; null for an id of no day. */
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

// All three values come from this file, so that none needs to be escaped.
export const textOfTable = ({ table, from, to }: Day): string =>
  `create table if not exists ${table} partition of rsm.outputs for values from ('${from}') to ('${to}')`

/** Ignores the error of `textOfTable` where another server has made the table a moment earlier. */
function unlessMade(error: { code?: string }): void {
  if (!made.has(error.code ?? '')) throw error
}

/** Makes the table for a task's output. */
export async function makeTable(database: Database, taskId: string): Promise<void> {
  const its = dayOf(taskId)
  if (its === null) return
  await database.ask('write', textOfTable(its)).catch(unlessMade)
}

/** Days after the current one that have their tables: no dump takes longer. */
const daysAhead = 2
/** Milliseconds between looks whether one is missing. */
const checkInterval = 3600_000

interface DaysAhead {
  close(): Promise<void>
}

/** Makes the tables of the next days before they are needed: while pg_dump runs none can be made, and no output would be taken. */
export async function openDaysAhead(parts: {
  database: Database
  clock: Pick<Clock, 'now'>
  log: Log
}): Promise<DaysAhead> {
  const { database, clock, log } = parts

  async function make(time: number): Promise<void> {
    const day = dayAt(time)
    const text = 'select to_regclass($1) is null as missing'
    const [found] = await database.ask<{ missing: boolean }>('api', text, [day.table])
    if (found?.missing)
      await withBriefLocks(database, 'api', (ask) => ask(textOfTable(day))).catch(unlessMade)
  }

  async function makeAll(): Promise<void> {
    for (let ahead = 0; ahead <= daysAhead; ahead++) await make(clock.now() + ahead * dayLength)
  }

  const making = repeat(checkInterval, makeAll, (error) =>
    log.warn({ err: error }, 'could not make the tables for the output of the next days; trying again'),
  )
  await making.now()
  return { close: () => making.stop() }
}
