import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import { repeat } from '../../../../disk/repeat.ts'
import { withBriefLocks } from '../connection/brief-locks.ts'
import type { Database } from '../connection/database.ts'
import { dayAt, dayLength, textOfTable, unlessMade } from './days.ts'

/** Days behind the present one that have their tables: no dump takes longer. */
const daysAhead = 2
/** Milliseconds between looks whether one is missing. */
const lookEvery = 3600_000

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

  const making = repeat(lookEvery, makeAll, (error) =>
    log.warn({ err: error }, 'could not make the tables for the output of the next days; trying again'),
  )
  await making.now()
  return { close: () => making.stop() }
}
