import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { AuditDetail } from '../../../src/core/audit.ts'
import { systemClock as clock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { beginRun } from '../../../src/server/storage/postgres/runs.ts'
import { runsContract } from '../../contracts/runs.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import {
  type Postgres,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../helpers/servers/postgres.ts'
import { host } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

const postgres = sharedPostgres()

/** A start of a server; `faults` collects its fatal errors. */
async function start(t: ExecutionContext, url: string, name = 'a') {
  const { store, database } = await openStore(t, url, name)
  const faults: unknown[] = []
  const losses: AuditDetail[] = []
  const onFatal = (error: unknown, lost: AuditDetail) => {
    faults.push(error)
    losses.push(lost)
  }
  const runs = await beginRun({ database, store, clock, log: createLog('ERROR'), onFatal })
  t.teardown(() => runs.close())
  const mark = async () => {
    const marked = await runs.mark()
    if (!marked) throw new Error('this start has no mark')
    return marked
  }
  return { store, database, runs, mark, faults, losses }
}

runsContract(test, async (t) => {
  const url = await (await postgres).database()
  return {
    async start() {
      const { store, runs } = await start(t, url)
      // Stops the mark that is written every second.
      runs.close()
      return {
        runs,
        write: () => store.transact((tx) => tx.put('hosts', host(1, 'web1'))),
        // The teardown of the test closes the store.
        end: async () => undefined,
      }
    },
  }
})

/** Backs up the data directory; the function that it returns restores it. */
function backup(server: Postgres, t: ExecutionContext): () => void {
  const copy = mkdtempSync(join(tmpdir(), 'rsm-postgres-backup-'))
  t.teardown(() => rmSync(copy, { recursive: true, force: true }))
  server.stop('fast')
  execFileSync('cp', ['-a', server.dataDirectory, join(copy, 'data')])
  server.start()
  return () => {
    server.stop('immediate')
    rmSync(server.dataDirectory, { recursive: true })
    execFileSync('cp', ['-a', join(copy, 'data'), server.dataDirectory])
    server.start()
  }
}

test('A02 the store knows the marks of all starts, also of concurrent servers, and no later ones', async (t) => {
  const url = await (await postgres).database()
  const [a, b] = [await start(t, url, 'a'), await start(t, url, 'b')]
  const marks = [await a.mark(), await b.mark(), await a.mark()]
  t.is(new Set(marks.map(({ run }) => run)).size, 2)
  const again = await start(t, url, 'a')
  marks.push(await again.mark())
  for (const { runs } of [a, b, again]) {
    for (const mark of marks) t.true(await runs.knows(mark))
    t.true(await runs.knows({ run: a.runs.id, sequence: 0 }))
    t.false(await runs.knows({ run: 'another \0', sequence: 0 }))
  }
  t.false(await b.runs.knows({ run: 'unknown', sequence: 0 }))
})

test('A02 without calls, the latest mark is a second old at most', async (t) => {
  const { runs, mark } = await start(t, await (await postgres).database())
  const { sequence } = await mark()
  await until('another mark is written', () => (runs.recent()?.sequence ?? 0) > sequence)
  t.pass()
})

test('A02 a start of a server that had the store to itself is known up to its end', async (t) => {
  const { store, runs } = await start(t, await (await postgres).database())
  const startedAt = '2026-03-02T09:30:12.502Z'
  await store.transact((tx) => tx.put('runs', { id: 'former', startedAt, first: 3, last: 100 }))
  t.true(await runs.knows({ run: 'former', sequence: 100 }))
  t.false(await runs.knows({ run: 'former', sequence: 101 }))
})

test('A02 a PostgreSQL that lost acknowledged data stops its running servers, and the next start does not know their marks', async (t) => {
  const server = await startPostgres((end) => t.teardown(end))
  const url = await server.database()
  const [a, b] = [await start(t, url, 'a'), await start(t, url, 'b')]
  const known = [await a.mark(), await b.mark()]
  const restore = backup(server, t)
  await until('the server reaches PostgreSQL again', () =>
    a.store
      .transact((tx) => tx.put('hosts', host(1, 'web1')))
      .then(
        () => true,
        () => false,
      ),
  )
  const lost = [await a.mark(), await b.mark()]
  restore()
  await until('both servers notice', () => a.faults.length > 0 && b.faults.length > 0)
  t.regex(String(a.faults[0]), /lost acknowledged data/)
  for (const [at, { losses }] of [a, b].entries()) {
    const [detail = {}] = losses
    t.regex(String(detail['message']), /^data acknowledged after 20\S+Z may be lost$/)
    t.true(Number(detail['markNow']) >= (known[at]?.sequence ?? 0), 'earlier marks are kept')
    t.true(Number(detail['mark']) >= (lost[at]?.sequence ?? 0), 'later marks are lost')
    t.true(Number(detail['markNow']) < Number(detail['mark']))
  }
  // The progress of the new start passes that of the lost starts.
  const next = await start(t, url, 'a')
  for (let work = 0; work < 10; work++) await next.mark()
  for (const mark of known) t.true(await next.runs.knows(mark))
  for (const mark of lost) t.false(await next.runs.knows(mark))
})

test('A02 starts known to agents and the one that noticed a restore are kept, however often a start fails', async (t) => {
  const url = await (await postgres).database()
  const { store, database } = await openStore(t, url)
  const startedAt = '2026-03-02T09:30:12.502Z'
  const restore = {
    noticedAt: startedAt,
    reason: 'a backup',
    hostId: 1,
    agentId: 'a',
    taskIds: ['t'],
    strangers: [],
    confirmedAt: null,
  }
  await store.transact((tx) => {
    tx.put('runs', { id: 'noticed', startedAt, first: 0, last: null, restore })
    tx.put('runs', { id: 'worked', startedAt, first: 0, last: null })
  })
  await database.ask('api', `update rsm.runs set progress = 7 where id = 'worked'`)
  await database.ask(
    'api',
    `insert into rsm.runs(id, rec) select 'failed-' || n, json_build_object('id', 'failed-' || n, 'startedAt', '2026-03-03T' || lpad(n::text, 5, '0'), 'first', 0, 'last', null)
    from generate_series(1, 9999) n`,
  )
  const { runs } = await start(t, url)
  const kept = new Set((await store.query('runs')).items.map(({ id }) => id))
  t.is(kept.size, 10_000)
  for (const id of ['noticed', 'worked', runs.id, 'failed-3']) t.true(kept.has(id), id)
  for (const id of ['failed-1', 'failed-2']) t.false(kept.has(id), id)
})
