import type pg from 'pg'
import { isFinal } from '../../../../../src/core/tasks/task.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { LinkClaim } from '../../../../../src/server/storage/ports/cluster.ts'
import { askOf, type Database } from '../../../../../src/server/storage/postgres/connection/database.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { executingServer } from '../../../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { execution, task } from '../../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()
const at = '2026-01-01T00:00:00.000Z'
const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
const [few, many] = [5, 2000]
/** PostgreSQL keeps a generic plan from the sixth call on. */
const untilKept = 7
/** Blocks and rows that a step may read per host; reading the whole table once per host takes hundreds. */
const most = 100

/** State of the table when PostgreSQL makes the plans that it keeps. */
const looks = {
  'empty and cut': {
    settings: 'vacuum_truncate = on',
    statements: ['vacuum rsm.executions', 'analyze rsm.executions'],
  },
  'empty and not cut': { settings: 'vacuum_truncate = off', statements: ['vacuum analyze rsm.executions'] },
  'never looked at': { settings: 'vacuum_truncate = on', statements: [] },
}

for (const [look, { settings, statements }] of Object.entries(looks))
  test(`F31 the cost per host of a large task is bounded, with plans made for a table that is ${look}`, async (t) => {
    const shared = await sharedStore(await postgres, (ending) => t.teardown(ending))
    let session: pg.Client | null = null
    let last: Promise<unknown> = Promise.resolve()
    // All statements that send and end go over one connection, with its plans.
    const { database, ...server } = await executingServer(
      shared,
      'server',
      createLocalHints(),
      (database) => ({
        ...database,
        ask<R extends object>(...[pool, statement, values]: Parameters<Database['ask']>): Promise<R[]> {
          const client = session
          if (client === null || pool !== 'write') return database.ask<R>(pool, statement, values)
          const asked = last.then(() => askOf(client)<R>(statement, values))
          last = asked.catch(() => undefined)
          return asked
        },
      }),
    )
    const { executions, ownership, links } = server
    const own = await database.connect(true)
    session = own
    t.teardown(async () => {
      await server.close()
      await own.end()
    })
    const member = await ownership.join('server')
    await shared.ask('api', `alter table rsm.executions set (autovacuum_enabled = off, ${settings})`)
    const link = async (hostId: number): Promise<LinkClaim> => {
      const claimed = await links.claim(
        hostId,
        { server: member, agentId: `agent-${hostId}` },
        () => undefined,
      )
      if (!claimed) throw new Error('the claim is refused')
      return claimed.claim
    }
    const claims = await Promise.all(Array.from({ length: many }, (_, n) => link(n + 1)))
    await shared.ask('api', 'vacuum analyze rsm.links')

    async function post(id: string, size: number): Promise<void> {
      await ownership.claim(member, [id])
      const due = claims
        .slice(0, size)
        .map(({ hostId }, position) => ({ ...execution(id, hostId), position, dueAt: at }))
      await executions.create(task(id, { hostCount: size }), due, async () => null)
    }
    const take = (size: number) =>
      executions.take(claims.slice(0, size).map((claim) => ({ claim, capacity: 16, agent })))
    const takeOver = (size: number) =>
      Promise.all(claims.slice(0, size).map((claim) => executions.takeOver(claim, new Set())))
    const settle = (id: string, size: number) =>
      Promise.all(
        claims.slice(0, size).map(({ hostId }) =>
          executions.settle(`${id}/${hostId}`, {
            complete: { taskId: id, exitCode: 0, duration: 1, startedAt: at, completedAt: at },
            incomplete: false,
          }),
        ),
      )

    async function touched(): Promise<number> {
      await database.ask('write', 'select pg_stat_force_next_flush()')
      await database.ask('write', 'select')
      const [row] = await shared.ask<{ touched: number }>(
        'api',
        `select (select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relid = s.relid)
          + heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as touched
          from pg_statio_user_tables s where relid = 'rsm.executions'::regclass`,
      )
      return row?.touched ?? Number.NaN
    }
    async function perHost(what: () => Promise<unknown>): Promise<number> {
      const before = await touched()
      await what()
      return ((await touched()) - before) / many
    }

    await post('small', few)
    await take(few)
    await settle('small', few)
    await executions.finish(member, 'small')
    for (const statement of statements) await shared.ask('api', statement)
    for (let call = 0; call < untilKept; call++) {
      await take(few)
      await takeOver(few)
      await settle('none', few)
    }
    for (let call = 0; call < untilKept; call++) {
      await post(`small${call}`, few)
      await take(few)
      await takeOver(few)
      await settle(`small${call}`, few)
      await executions.finish(member, `small${call}`)
    }
    await post('large', many)
    const work = {
      take: await perHost(() => take(many)),
      takeOver: await perHost(() => takeOver(many)),
      settle: await perHost(() => settle('large', many)),
    }
    t.log(work)
    t.true(
      Object.values(work).every((each) => each > 1 && each < most),
      JSON.stringify(work),
    )
    t.true((await executions.page('large')).every((running) => isFinal(running.execution.status)))
  })
