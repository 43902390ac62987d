import { randomBytes } from 'node:crypto'
import { RsmError } from '../../../../core/errors.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Store, Transaction } from '../../ports/store.ts'
import type { authors } from '../../records/records.ts'
import type { Ask, Database, Isolation, Statement } from '../connection/database.ts'
import { isAway } from '../connection/failure.ts'
import { Changes } from './changes.ts'
import { forgetFutureXids, openFeed } from './feed.ts'
import { createIds, type Open, Seen, type Sent } from './open-transaction.ts'
import { createReads } from './reads.ts'
import { askThrough, type RunOpen, TransactionQueue, viewOf } from './transactions.ts'
import { conflictOf, isClash } from './unique-keys.ts'

/** The store in PostgreSQL, and what is particular to it. */
export interface PostgresStore extends Store {
  /**
   * As `transact`, with statements of other ports in the same transaction: `ask` sees what `tx` has put and removed before.
   * It runs beside other transactions, and waits for none of this server.
   */
  transactAsk<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  /**
   * As `transactAsk`, for what many do at once and none is to do anew because others were near: what `work` gets by an id is
   * locked, and all else that it decides on it has to `lock` by a name.
   */
  transactLocked<T>(work: (tx: Transaction, ask: Ask) => Promise<T>): Promise<T>
  /** Another server has changed something: those who watch hear of it now. */
  poll(): void
  /** Transactions that wait for their turn. */
  readonly queueLength: number
}

interface PostgresStoreOptions {
  /** With the schema; whoever opened it closes it, after the store. */
  readonly database: Database
  readonly log: Log
}

/** Opens the store; the first server of all names it. Errors: `unavailable`. */
export async function openPostgresStore({ database, log }: PostgresStoreOptions): Promise<PostgresStore> {
  const storeId = await nameStore(database)
  await forgetFutureXids(database)
  const feed = await openFeed(database, log)
  const ids = createIds()
  const reads = createReads((statement, values) => database.ask('api', statement, values))
  let isClosed = false

  const runAs = async <T>(isolation: Isolation, work: (open: Open) => Promise<T>): Promise<T> => {
    let sent: Sent = { xid: null, changed: [] }
    try {
      const value = await database.transaction(
        'api',
        async (ask) => {
          feed.forget(sent)
          sent = { xid: null, changed: [] }
          const done = await work({ ask, ids, sent, seen: new Seen() })
          feed.expect(sent)
          return done
        },
        isolation,
      )
      feed.committed(sent)
      return value
    } catch (error) {
      feed.forget(sent)
      // Then it may have been carried out.
      if (isAway(error)) feed.committed(sent)
      throw error
    }
  }
  const run: RunOpen = (work) => runAs('serializable', work)
  const queue = new TransactionQueue(run, reads)

  async function transactAs<T>(
    isolation: Isolation,
    work: (tx: Transaction, ask: Ask) => Promise<T>,
    isAgain = false,
  ): Promise<T> {
    if (isClosed) throw new RsmError('unavailable', 'the store is closed')
    let changes = new Changes()
    try {
      return await runAs(isolation, async (open) => {
        changes = new Changes()
        const tx = viewOf(open, changes, isolation === 'read committed')
        const value = await work(tx, askThrough(open, changes))
        await changes.send(open)
        return value
      })
    } catch (error) {
      if (!isClash(error)) throw error
      // It may have clashed with what it did not see yet, and decide otherwise when it does.
      if (!isAgain) return transactAs(isolation, work, true)
      throw await conflictOf(error, changes, reads)
    }
  }

  return {
    ...reads,
    storeId,
    get readOnlyReason() {
      return database.refusal
    },
    get queueLength() {
      return queue.waiting
    },
    transact: (work) => queue.enqueue(work),
    transactAsk: (work) => transactAs('serializable', work),
    transactLocked: (work) => transactAs('read committed', work),
    async textBytes(noun) {
      const rows = await database.ask<{ author: string; bytes: number }>('api', textBytesOf[noun])
      return new Map(rows.map(({ author, bytes }) => [author, bytes]))
    },
    watch: (noun, changed) => feed.watch(noun, changed),
    refresh: () => feed.refresh(),
    poll: () => feed.poll(),
    async close() {
      isClosed = true
      await queue.close()
      await feed.close()
    },
  }
}

/** The same authors as in storage/records/records.ts. */
const textBytesOf: Record<keyof typeof authors, Statement> = {
  scripts: bytesBy('scripts', `coalesce(rec->>'changedBy', rec->>'createdBy')`),
  schedules: bytesBy('schedules', `rec->>'owner'`),
  tasks: bytesBy('tasks', `rec->>'createdBy'`, `where status = 'RUNNING'`),
}

function bytesBy(noun: keyof typeof authors, author: string, where = ''): Statement {
  const text = `select ${author} as author, sum(octet_length(rec::text))::bigint as bytes from rsm.${noun} ${where} group by 1`
  return { name: `store text bytes ${noun}`, text }
}

async function nameStore(database: Database): Promise<string> {
  const name = randomBytes(16).toString('base64url')
  const [row] = await database.ask<{ store_id: string }>(
    'api',
    'update rsm.cluster set store_id = coalesce(store_id, $1) returning store_id',
    [name],
  )
  if (!row) throw new Error('rsm.cluster has one row from the first migration on')
  return row.store_id
}
