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

/** SQLSTATEs of an existing table: `if not exists` checks before it waits for another server. */
const made = new Set(['42P07', '23505', '42710'])

/** Table for output of tasks created on one UTC day: ids from `from` up to, not including, `to`. */
interface Day {
  readonly table: string
  readonly from: string
  readonly to: string
}

/** Day of a task's output; null if the id is not of a day. */
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

/** Whether the day is over by any server's clock, so that no task gets an id of it; `now`: milliseconds since 1970. */
export const isOver = ({ to }: Day, now: number): boolean => to <= firstDigits(now - dayLength)

/** Whether the table of a day is missing: not yet created, or dropped. */
export const isWithoutTable = (error: unknown): boolean => (error as { code?: string }).code === '42P01'

// No value needs escaping, because all come from this file.
export const textOfTable = ({ table, from, to }: Day): string =>
  `create table if not exists ${table} partition of rsm.outputs for values from ('${from}') to ('${to}')`

/** Ignores the error of `textOfTable` if another server has just created the table. */
function unlessMade(error: { code?: string }): void {
  if (!made.has(error.code ?? '')) throw error
}

export async function makeTable(database: Database, taskId: string): Promise<void> {
  const its = dayOf(taskId)
  if (its === null) return
  await database.ask('write', textOfTable(its)).catch(unlessMade)
}

/** Days after the current one whose tables exist: no dump takes longer. */
const daysAhead = 2
/** Milliseconds between checks for missing tables. */
const checkInterval = 3600_000

interface DaysAhead {
  close(): Promise<void>
}

/** Creates tables ahead, because none can be created while pg_dump runs, and output would be refused. */
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
    log.warn({ err: error }, 'could not create the tables for the output of the next days; trying again'),
  )
  await making.now()
  return { close: () => making.stop() }
}
