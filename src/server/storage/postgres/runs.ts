import { randomBytes } from 'node:crypto'
import type { AuditDetail } from '../../../core/audit.ts'
import type { RunMark } from '../../../core/protocol/messages.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import type { Runs } from '../ports/cluster.ts'
import type { RunRecord } from '../records/run.ts'
import { batched } from './connection/batched.ts'
import type { Database } from './connection/database.ts'
import type { PostgresStore } from './store/store.ts'
import { plainText } from './store/tables.ts'

/** Starts that a store keeps. An agent of an older one looks like the witness of a restore, and a person decides. */
const remembered = 10_000
/** Seconds of marks to keep, to find since when data was lost. */
const longestMemory = 3600
/** Milliseconds between automatic marks. */
const markInterval = 1000

interface RunParts {
  readonly database: Database
  readonly store: PostgresStore
  readonly clock: Clock
  readonly log: Log
  /** Called if PostgreSQL lost acknowledged data, so that the state of this server is void. `lost`: detail for the audit log. */
  readonly onFatal: (error: unknown, lost: AuditDetail) => void
}

export interface PostgresRuns extends Runs {
  close(): void
}

/**
 * Records a new start of a server. Its marks are consecutive numbers in a row of its own. A mark is handed
 * out once its number is committed, after everything acknowledged before. So a PostgreSQL that loses
 * acknowledged data loses the number too. It never gets it back, because a number is only written over the
 * previous one. Then this server must end; agents that know the lost number prove the loss to the next start.
 */
export async function beginRun(parts: RunParts): Promise<PostgresRuns> {
  const { database, clock, log } = parts
  const id = randomBytes(15).toString('base64url')
  const startedAt = isoTime(clock.now())
  await note(parts.store, { id, startedAt, first: 0, last: null })
  const progress = createProgress(id, parts)
  const known = new Map<string, number>()

  const numberOf = batched(async (ids: readonly string[]) => {
    const found = await database.ask<{ id: string; number: number }>(
      'api',
      {
        name: 'runs known',
        // `last` is of runs of a server with a data directory, before a migration.
        text: `select id, greatest(progress, coalesce((rec->>'last')::bigint, 0)) as number from rsm.runs where id = any($1::text[])`,
      },
      [ids.map(plainText)],
    )
    const numbers = new Map(found.map((row) => [row.id, row.number]))
    return ids.map((one) => numbers.get(plainText(one)))
  })

  async function lookUp({ run, sequence }: RunMark): Promise<boolean> {
    const number = await numberOf(run)
    if (number !== undefined) known.set(run, number)
    return number !== undefined && sequence <= number
  }

  const timer = setInterval(() => {
    progress
      .next(undefined)
      .catch((error: unknown) => log.debug({ err: error }, 'could not write the mark of this start'))
  }, markInterval).unref()
  return {
    id,
    startedAt,
    get sequence() {
      return progress.noted
    },
    mark: async () => ({ run: id, sequence: await progress.next(undefined) }),
    recent: () => ({ run: id, sequence: progress.noted }),
    knows(mark) {
      if (mark.run === id && mark.sequence <= progress.noted) return true
      return mark.sequence <= (known.get(mark.run) ?? -1) || lookUp(mark)
    },
    close: () => clearInterval(timer),
  }
}

/** Position in PostgreSQL's WAL, and its timeline: a promoted standby begins a new one. */
interface Reached {
  readonly number: number | null
  readonly lsn: string
  readonly timeline: string
}

interface Noted extends Reached {
  readonly at: string
}

const reached = `pg_current_wal_lsn()::text as lsn, substring(pg_walfile_name(pg_current_wal_lsn()) for 8) as timeline`

function createProgress(id: string, { database, clock, onFatal }: RunParts) {
  /** Last number known to be committed, and last one that may be. */
  let noted = 0
  let tried = 0
  /** One entry per second. */
  const recent: Noted[] = []

  function remember(now: Reached): void {
    const at = isoTime(clock.now())
    const last = recent.at(-1)
    if (last && Date.parse(at) - Date.parse(last.at) < markInterval) return
    recent.push({ ...now, at })
    if (recent.length > longestMemory) recent.shift()
  }

  /** Detail of a loss, from the marks that only this process remembers. */
  async function lostAfter(from: number): Promise<AuditDetail> {
    const [now] = await database.ask<Reached>(
      'api',
      `select (select progress from rsm.runs where id = $1) as number, ${reached}`,
      [id],
    )
    const last = recent.at(-1)
    const kept = recent.findLast(({ number }) => (number ?? 0) <= (now?.number ?? 0))
    return {
      message: `data acknowledged after ${kept?.at ?? 'the start of this server'} may be lost`,
      server: database.name,
      mark: from,
      markNow: now?.number ?? null,
      lsn: last?.lsn ?? null,
      lsnNow: now?.lsn ?? null,
      timeline: last?.timeline ?? null,
      timelineNow: now?.timeline ?? null,
    }
  }

  const next = batched(async (asking: readonly undefined[]) => {
    const number = tried + 1
    const [from, to] = [noted, tried]
    tried = number
    const [row] = await database.ask<Omit<Reached, 'number'>>(
      'write',
      {
        name: 'runs progress',
        text: `update rsm.runs set progress = $2 where id = $1 and progress between $3 and $4 returning ${reached}`,
      },
      [id, number, from, to],
    )
    if (row === undefined) {
      const error = new Error(
        `PostgreSQL lost acknowledged data: mark ${from} of this start is missing; it was restored, or a standby that lagged behind took over`,
      )
      onFatal(error, await lostAfter(from))
      throw error
    }
    noted = number
    remember({ number, ...row })
    return asking.map(() => number)
  })
  return {
    next,
    get noted() {
      return noted
    },
  }
}

async function note(store: PostgresStore, run: RunRecord): Promise<void> {
  await store.transactAsk(async (tx, ask) => {
    const previous = await ask<{ rec: RunRecord; progress: number }>('select rec, progress from rsm.runs')
    for (const one of forgotten(previous)) tx.remove('runs', one.rec.id)
    tx.put('runs', run)
  })
}

/** Starts to remove. Keeps those with a restore, which may hold work; removes first those that no agent remembers. */
function forgotten(previous: readonly { rec: RunRecord; progress: number }[]): { rec: RunRecord }[] {
  const rest = previous
    .filter(({ rec }) => !rec.restore)
    .toSorted((a, b) => (a.rec.startedAt < b.rec.startedAt ? -1 : 1))
  const isIdle = ({ rec, progress }: { rec: RunRecord; progress: number }) =>
    progress === 0 && (rec.last ?? 0) - rec.first <= 1
  const inOrder = [...rest.filter(isIdle), ...rest.filter((one) => !isIdle(one))]
  return inOrder.slice(0, Math.max(0, previous.length + 1 - remembered))
}
