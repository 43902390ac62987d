import type { ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { asBegun, asLost, asOwnEnd } from '../../../src/server/storage/executions/transitions.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import type { Offer } from '../../../src/server/storage/ports/executions.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'
import { execution, task } from '../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()
const at = '2026-01-01T00:00:00.000Z'
const away = { instanceOf: RsmError, code: 'unavailable' }
const piece = (sequence: number) =>
  ({ taskId: 't1', stream: 'stdout', sequence, data: `${sequence};` }) as const
const end = (error?: string) => ({
  complete: {
    taskId: 't1',
    exitCode: 0,
    duration: 1,
    startedAt: at,
    completedAt: at,
    ...(error && { error }),
  },
  incomplete: false,
})

/**
 * A server with a task on a linked host. `lose` drops the response to the next statement with this name, or the
 * statement itself.
 */
async function site(t: ExecutionContext, more: { overSsh?: true } = {}) {
  const shared = await sharedStore(await postgres, (ending) => t.teardown(ending))
  let lost = ''
  let isAsked = true
  const losing = (database: Database): Database => ({
    ...database,
    async ask(pool, statement, values) {
      const isLost = lost !== '' && typeof statement !== 'string' && statement.name.startsWith(lost)
      if (!isLost) return database.ask<never>(pool, statement, values)
      lost = ''
      if (isAsked) await database.ask(pool, statement, values)
      throw new RsmError('unavailable', 'the response was lost')
    },
  })
  const server = await executingServer(shared, 'server', createLocalHints(), losing)
  t.teardown(() => server.close())
  const { ownership, links, executions } = server
  const member = await ownership.join('server')
  await ownership.claim(member, ['t1'])
  const all = [{ ...execution('t1', 1), position: 0, dueAt: at, ...more }]
  await executions.create(task('t1', { maxOutputBytes: 1000 }), all, async () => null)
  const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
  const link = async (): Promise<Offer> => {
    const claimed = await links.claim(1, { server: member, agentId: 'agent-1' }, () => undefined)
    if (!claimed) throw new Error('the claim was refused')
    return { claim: claimed.claim, capacity: 1, agent }
  }
  const lose = (name: string, how: { isCarriedOut: boolean } = { isCarriedOut: true }) => {
    lost = name
    isAsked = how.isCarriedOut
  }
  const text = async () =>
    (await server.outputs.read('t1', { after: 0, limit: 50 })).entries.map(({ data }) => data).join('')
  return { ...server, member, link, lose, text }
}

test('an execution marked as sent by a statement whose response was lost is sent once, over the same link', async (t) => {
  const { executions, link, lose } = await site(t)
  const offer = await link()
  lose('executions take')
  await t.throwsAsync(executions.take([offer]), away)
  t.is((await executions.find('t1', 1))?.execution.status, 'RUNNING')
  t.deepEqual(await executions.waiting([1, 2]), [1])
  t.deepEqual(
    (await executions.take([offer])).map(({ id }) => id),
    ['t1/1'],
  )
  t.deepEqual(await executions.take([offer]), [])
  t.is(await executions.append('t1/1', piece(0), undefined, true), 0)
})

test('a link that follows a lost response takes over the marked execution, and the previous link gets nothing', async (t) => {
  const { executions, link, lose } = await site(t)
  const former = await link()
  lose('executions take')
  await t.throwsAsync(executions.take([former]), away)
  const offer = await link()
  t.is((await executions.takeOver(offer.claim, new Set())).length, 1)
  t.deepEqual(await executions.take([former]), [])
  t.deepEqual(await executions.take([offer]), [])
})

test('output whose response was lost is stored once, and continues from there over the next link', async (t) => {
  const { executions, link, lose, text } = await site(t)
  await executions.take([await link()])
  t.is(await executions.append('t1/1', piece(0), undefined, true), 0)
  lose('output append')
  const failing = [1, 2].map((n) => executions.append('t1/1', piece(n), undefined, true))
  await t.throwsAsync(failing[0] ?? Promise.resolve(), away)
  await failing[1]?.catch(() => undefined)
  const [running] = await executions.takeOver((await link()).claim, new Set())
  const stored = running?.output.storedSequence ?? -1
  t.true(stored >= 1)
  for (let n = stored + 1; n < 5; n++) t.is(await executions.append('t1/1', piece(n), undefined, true), n)
  t.is(await text(), '0;1;2;3;4;')
})

for (const isCarriedOut of [true, false])
  test(`over SSH output is not repeated: a piece that ${isCarriedOut ? 'was stored exists once' : 'was not stored is missing, and the result says so'}`, async (t) => {
    const { executions, member, lose, text } = await site(t, { overSsh: true })
    await executions.transition(asBegun(member, ['t1/1']))
    t.is(await executions.append('t1/1', piece(0), undefined, false), 0)
    lose('output append', { isCarriedOut })
    await t.throwsAsync(executions.append('t1/1', piece(1), undefined, false), away)
    t.is(await executions.append('t1/1', piece(2), undefined, false), 2)
    t.is(await text(), isCarriedOut ? '0;1;2;' : '0;2;')
    const [ended] = await executions.transition(
      asOwnEnd(member, 't1/1', { status: 'SUCCESS', exitCode: 0, error: null }),
    )
    t.is(ended?.outputComplete, isCarriedOut)
  })

test('missing output of an agent that sends nothing twice is still recorded as missing over its next link', async (t) => {
  const { executions, link, lose } = await site(t)
  await executions.take([await link()])
  lose('output append', { isCarriedOut: false })
  await t.throwsAsync(executions.append('t1/1', piece(0), undefined, false), away)
  await executions.takeOver((await link()).claim, new Set())
  t.is(await executions.append('t1/1', piece(1), undefined, false), 1)
  t.is((await executions.settle('t1/1', end()))[0]?.outputComplete, false)
})

test('an end whose response was lost counts once when it is repeated', async (t) => {
  const { executions, link, lose, member } = await site(t)
  await executions.take([await link()])
  lose('executions write')
  await t.throwsAsync(executions.settle('t1/1', end()), away)
  t.deepEqual(await executions.settle('t1/1', end()), [])
  t.like(await executions.finish(member, 't1'), { status: 'SUCCESS', counts: { SUCCESS: 1 } })
})

test('characters that PostgreSQL text cannot hold are stored as replacement characters', async (t) => {
  const { executions, link } = await site(t)
  await executions.take([await link()])
  const claim = (await link()).claim
  await executions.takeOver(claim, new Set())
  const [lost] = await executions.transition(asLost({ link: claim }, [{ id: 't1/1', error: 'a\0b\ud800c' }]))
  t.is(lost?.status, 'LOST')
  const stored = (await executions.page('t1'))[0]?.execution
  t.is(stored?.status, 'LOST')
  t.is(stored?.error, 'a\ufffdb\ufffdc')
})

test('output past the bound is dropped, and a later link and the result know that it is truncated', async (t) => {
  const { executions, link, text } = await site(t)
  await executions.take([await link()])
  const bound = 3 * 1000 + 256 * 1024
  const data = 'x'.repeat(bound)
  t.is(await executions.append('t1/1', { ...piece(0), data }, undefined, true), 0)
  t.is(await executions.append('t1/1', piece(1), undefined, true), 1)
  t.is((await text()).length, 0, 'the first piece exceeds the bound on its own')
  const [running] = await executions.takeOver((await link()).claim, new Set())
  t.true(running?.execution.truncated)
  t.is(await executions.append('t1/1', piece(7), undefined, true), 7)
  const [ended] = await executions.settle('t1/1', end())
  t.like(ended, { truncated: true })
})
