import type { TestFn } from 'ava'
import fc from 'fast-check'
import { RsmError } from '../../src/core/errors.ts'
import type { ScriptComplete } from '../../src/core/protocol/messages.ts'
import { emptyCounts, isFinal, mayBecome, type ResultStatus } from '../../src/core/tasks/task.ts'
import {
  asBegun,
  asDue,
  asLost,
  asNamed,
  asOwnEnd,
  asRefused,
  asReturned,
  asSkipped,
  asUnreachable,
} from '../../src/server/storage/executions/transitions.ts'
import type { LinkClaim, Links, Member, Ownership } from '../../src/server/storage/ports/cluster.ts'
import type { AtTheEnd, Execution, Executions, Offer } from '../../src/server/storage/ports/executions.ts'
import type { Results } from '../../src/server/storage/ports/outputs.ts'
import type { Store } from '../../src/server/storage/ports/store.ts'
import { execution, task } from '../helpers/servers/store-records.ts'
import { until } from '../helpers/until.ts'

/** Executions on an empty store, and the ports that they use. */
export interface OpenedExecutions {
  executions: Executions
  store: Store
  results: Results
  links: Links
  ownership: Ownership
  /** Ends this life of the store and begins the next one on the same data. */
  reopen(): Promise<OpenedExecutions>
}

const at = '2026-01-01T00:00:00.000Z'
const complete = (taskId: string, exitCode: number): ScriptComplete => ({
  taskId,
  exitCode,
  duration: 1,
  startedAt: at,
  completedAt: at,
})
const piece = (taskId: string, sequence: number, data = 'x') =>
  ({ taskId, stream: 'stdout', sequence, data }) as const
const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
const offer = (claim: LinkClaim, capacity = 16): Offer => ({ claim, capacity, agent })
const none = async () => null

async function claimOf({ links }: OpenedExecutions, hostId: number, server: Member): Promise<LinkClaim> {
  const former = await links.holder(hostId)
  if (former) await links.release(former)
  const claimed = await links.claim(hostId, { server, agentId: `agent-${hostId}` }, () => undefined)
  if (!claimed) throw new Error('the claim is refused')
  return claimed.claim
}

/** Creates a task on these hosts, all due, owned by a new member. */
async function begun(opened: OpenedExecutions, hostIds: readonly number[], id = 't1') {
  const member = await opened.ownership.join('server')
  await opened.ownership.claim(member, [id])
  const all = hostIds.map((hostId, position) => ({ ...execution(id, hostId), position, dueAt: at }))
  await opened.executions.create(task(id, { hostCount: all.length }), all, none)
  return member
}

const statuses = (changed: readonly Execution[]) => changed.map(({ id, status }) => `${id} ${status}`)

/** Suite for every implementation of Executions. `numRuns`: runs of the test of random steps. */
export function executionsContract(
  test: TestFn,
  make: (teardown: (end: () => Promise<void>) => void) => Promise<OpenedExecutions>,
  numRuns = 25,
) {
  test('a task is written together with its executions and its idempotency key, or not at all', async (t) => {
    const { executions, store } = await make((end) => t.teardown(end))
    const known = await executions.create(task('t1'), [execution('t1', 1)], async () => 'another')
    t.is(known, 'another')
    t.is(await store.get('tasks', 't1'), undefined)
    t.deepEqual(await executions.running(), [])
    await executions.create(task('t1'), [execution('t1', 1)], none)
    t.deepEqual(await executions.running(), ['t1'])
    t.like(await executions.counts('t1'), { PENDING: 1 })
  })

  test('due executions are taken in order of their turn, up to the capacity of the host', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    for (const id of ['t1', 't2', 't3']) await begun(opened, [1, 2], id)
    const member = await opened.ownership.join('server')
    const claim = await claimOf(opened, 1, member)
    const taken = await executions.take([offer(claim, 2)])
    t.deepEqual(statuses(taken), ['t1/1 RUNNING', 't2/1 RUNNING'])
    t.deepEqual(await executions.take([offer(claim, 2)]), [])
    await executions.settle('t1/1', { complete: complete('t1', 0), incomplete: false })
    t.deepEqual(statuses(await executions.take([offer(claim, 2)])), ['t3/1 RUNNING'])
  })

  test('a task that is still being written does not keep another one from being taken', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const claim = await claimOf(opened, 1, await begun(opened, [1]))
    const creating = executions.create(task('t2'), [{ ...execution('t2', 1), position: 0, dueAt: at }], none)
    const taken = await executions.take([offer(claim)])
    await creating
    taken.push(...(await executions.take([offer(claim)])))
    t.deepEqual(statuses(taken), ['t1/1 RUNNING', 't2/1 RUNNING'])
  })

  test('executions over SSH are begun and ended by the owner of the task, and links do not affect them', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions, ownership } = opened
    const member = await ownership.join('server')
    await ownership.claim(member, ['t1'])
    const own = (hostId: number) => ({
      ...execution('t1', hostId),
      position: hostId - 1,
      dueAt: at,
      overSsh: true as const,
    })
    await executions.create(task('t1', { type: 'INSTALL', hostCount: 2 }), [own(1), own(2)], none)
    const claim = await claimOf(opened, 1, member)
    t.deepEqual(await executions.take([offer(claim)]), [])
    t.deepEqual(await executions.waiting([1, 2]), [])
    t.deepEqual(statuses(await executions.transition(asBegun(member, ['t1/1', 't1/2']))), [
      't1/1 RUNNING',
      't1/2 RUNNING',
    ])
    t.deepEqual(await executions.takeOver(claim, new Set()), [])
    t.deepEqual(statuses(await executions.cancel('t1')), ['t1/1 RUNNING', 't1/2 RUNNING'])
    t.true((await executions.find('t1', 1))?.execution.cancelRequested)
    await executions.append('t1/1', piece('t1', 0, 'said'), undefined, false)
    const ended = { status: 'SUCCESS', exitCode: 0, error: null } as const
    const other = await ownership.join('other')
    t.deepEqual(await executions.transition(asOwnEnd(other, 't1/1', ended)), [])
    const [first] = await executions.transition(asOwnEnd(member, 't1/1', ended))
    t.like(first, { status: 'SUCCESS', exitCode: 0, stdoutBytes: 4, outputComplete: true })
    t.deepEqual(await executions.transition(asOwnEnd(member, 't1/1', { ...ended, status: 'FAILED' })), [])
    t.deepEqual(
      statuses(await executions.transition(asLost({ owner: member }, [{ id: 't1/2', error: 'cut' }]))),
      ['t1/2 LOST'],
    )
    t.like(await executions.finish(member, 't1'), { status: 'CANCELLED', counts: { SUCCESS: 1, LOST: 1 } })
  })

  test('a step on the plan by a server that lost the task changes nothing', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions, ownership } = opened
    const former = await begun(opened, [1, 2])
    const member = await ownership.join('server')
    await ownership.claim(member, ['t1'])
    t.deepEqual(await executions.transition(asSkipped(former, ['t1/1'], 'why')), [])
    t.deepEqual(await executions.transition(asUnreachable(former, [{ id: 't1/1', error: 'why' }])), [])
    await executions.pause(former, 't1', at)
    t.is((await opened.store.get('tasks', 't1'))?.pauseUntil, null)
    t.deepEqual(statuses(await executions.transition(asSkipped(member, ['t1/1', 't1/2'], 'why'))), [
      't1/1 SKIPPED',
      't1/2 SKIPPED',
    ])
    const also: AtTheEnd = (tx, { id, status }) =>
      tx.put('idempotency', { id, bodyHash: status, taskId: id, createdAt: at })
    t.is(await executions.finish(former, 't1', also), null)
    t.is(await opened.store.get('idempotency', 't1'), undefined)
    t.like(await executions.finish(member, 't1', also), { status: 'FAILED', counts: { SKIPPED: 2 } })
    t.like(await opened.store.get('idempotency', 't1'), { bodyHash: 'FAILED' })
  })

  test('a replaced link is sent nothing, and ends nothing', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1])
    const former = await claimOf(opened, 1, member)
    const claim = await claimOf(opened, 1, member)
    t.deepEqual(await executions.take([offer(former)]), [])
    await executions.take([offer(claim)])
    t.deepEqual(await executions.transition(asLost({ link: former }, [{ id: 't1/1', error: 'why' }])), [])
    t.deepEqual(await executions.transition(asReturned(former, ['t1/1'])), [])
    t.deepEqual(await executions.transition(asRefused(former, [{ id: 't1/1', error: 'why' }])), [])
    t.like(await executions.counts('t1'), { RUNNING: 1 })
  })

  test('a HELLO gets the executions that an older link was marking, and the older link cannot return them', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1])
    const former = await claimOf(opened, 1, member)
    const taking = executions.take([offer(former)])
    const claim = await claimOf(opened, 1, member)
    const sent = await executions.takeOver(claim, new Set())
    t.deepEqual(
      sent.map(({ execution: { id } }) => id),
      (await taking).length === 0 ? [] : ['t1/1'],
    )
    t.deepEqual(await executions.transition(asReturned(former, ['t1/1'])), [])
    t.deepEqual(await executions.takeOver(former, new Set()), [])
  })

  test('until a newer link takes an execution over, only the older link can return it', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1])
    const former = await claimOf(opened, 1, member)
    await executions.take([offer(former)])
    const claim = await claimOf(opened, 1, member)
    t.deepEqual(await executions.transition(asNamed(claim, ['t1/1'])), [])
    t.deepEqual(await executions.transition(asReturned(claim, ['t1/1'])), [])
    t.deepEqual(await executions.transition(asRefused(claim, [{ id: 't1/1', error: 'why' }])), [])
    t.deepEqual(statuses(await executions.transition(asReturned(former, ['t1/1']))), ['t1/1 PENDING'])
  })

  test('an unsent execution is returned once and taken again; a cancel in between ends it', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1])
    const claim = await claimOf(opened, 1, member)
    await executions.take([offer(claim)])
    t.like((await executions.transition(asReturned(claim, ['t1/1'])))[0], {
      status: 'PENDING',
      sentAt: null,
      dueAt: at,
    })
    t.deepEqual(await executions.transition(asReturned(claim, ['t1/1'])), [])
    t.is((await executions.take([offer(claim)])).length, 1)
    t.like((await executions.cancel('t1'))[0], { status: 'RUNNING', cancelRequested: true })
    t.deepEqual(statuses(await executions.transition(asReturned(claim, ['t1/1']))), ['t1/1 CANCELLED'])
  })

  test('a held task starts and gives up nothing; its running executions continue, and a cancel ends the pending ones', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1, 2])
    const claim = await claimOf(opened, 1, member)
    await executions.take([offer(claim)])
    await executions.held.add(['t1'])
    t.deepEqual(await executions.take([offer(await claimOf(opened, 2, member))]), [])
    t.deepEqual(await executions.transition(asUnreachable(member, [{ id: 't1/2', error: 'why' }])), [])
    t.deepEqual(await executions.ofHost(2), [])
    const cancelled = await executions.cancel('t1', { pendingOnly: true, error: 'held' })
    t.deepEqual(statuses(cancelled), ['t1/2 CANCELLED'])
    t.is((await executions.settle('t1/1', { complete: complete('t1', 0), incomplete: false })).length, 1)
  })

  test('queries report the hosts with executions to take, and the number that run and wait', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1, 2, 3])
    await executions.take([offer(await claimOf(opened, 1, member))])
    await executions.create(task('t2'), [execution('t2', 4)], none)
    const open = (hostId: number) => executions.transactWithOpen(hostId, async (_, open) => open)
    t.deepEqual(
      (await executions.waiting([1, 2, 3, 4, 77])).toSorted((a, b) => a - b),
      [2, 3],
    )
    t.deepEqual(await executions.waiting([3]), [3])
    t.deepEqual(await executions.load(), { tasks: 2, running: 1, waiting: 2 })
    const counted = (...counts: number[]) =>
      until(`${counts.join()} wait on hosts 1 to 4`, async () => {
        const now = await Promise.all([1, 2, 3, 4].map((hostId) => executions.waitingOn(hostId)))
        return now.join() === counts.join()
      })
    await counted(0, 1, 1, 0)
    t.deepEqual([await open(1), await open(4), await open(77)], [1, 1, 0])
    t.deepEqual(
      (await executions.page('t1', { hostIds: [3, 1, 77] })).map(({ execution: { id } }) => id).toSorted(),
      ['t1/1', 't1/3'],
    )
    await executions.held.add(['t1'])
    t.deepEqual(await executions.waiting([2, 3]), [])
    await counted(0, 0, 0, 0)
    await executions.held.clear()
    await executions.transition(asUnreachable(member, [{ id: 't1/2', error: 'gone' }]))
    t.deepEqual(await executions.waiting([2, 3]), [3])
    await executions.transition(asDue(member, ['t2/4']))
    t.deepEqual(await executions.waiting([4]), [])
    await opened.ownership.claim(member, ['t2'])
    await executions.transition(asDue(member, ['t2/4']))
    t.deepEqual(await executions.waiting([4]), [4])
    await executions.create(task('t3'), [{ ...execution('t3', 4), dueAt: at }], none)
    await counted(0, 0, 1, 2)
    t.is(await open(2), 0)
  })

  test('output is stored once and in order, and a HELLO continues from there, even after a restart', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions } = opened
    const member = await begun(opened, [1])
    await executions.take([offer(await claimOf(opened, 1, member))])
    const append = (sequence: number) =>
      executions.append('t1/1', piece('t1', sequence, 'abc'), undefined, true)
    t.deepEqual(await Promise.all([append(0), append(1)]), [0, 1])
    t.is(await append(1), 1, 'already stored')
    t.is(await append(5), 1, 'past a gap')
    const output = { storedSequence: 1, stdoutBytes: 6, stderrBytes: 0 }
    t.like((await executions.find('t1', 1))?.output, output)
    const next = await opened.reopen()
    t.like((await next.executions.ofHost(1))[0]?.output, output)
    const claim = await claimOf(next, 1, await next.ownership.join('server'))
    t.like((await next.executions.takeOver(claim, new Set()))[0]?.output, output)
    t.is(await next.executions.append('t1/1', piece('t1', 2), undefined, true), 2)
  })

  test("the agent's acknowledgement of an execution is visible at once, and after a restart", async (t) => {
    const opened = await make((end) => t.teardown(end))
    const member = await begun(opened, [1])
    await opened.executions.take([offer(await claimOf(opened, 1, member))])
    opened.executions.received('t1/1')
    t.true((await opened.executions.find('t1', 1))?.execution.named)
    const [asked] = await opened.executions.cancel('t1')
    t.like(asked, { named: true, cancelRequested: true })
    const { executions } = await opened.reopen()
    t.true((await executions.find('t1', 1))?.execution.named)
  })

  test('F09 a late result of a LOST execution is kept once, while the task runs and afterwards', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions, results } = opened
    const member = await begun(opened, [1, 2])
    for (const hostId of [1, 2]) {
      const claim = await claimOf(opened, hostId, member)
      await executions.take([offer(claim)])
      const id = `t1/${hostId}`
      t.deepEqual(statuses(await executions.transition(asLost({ link: claim }, [{ id, error: 'gone' }]))), [
        `${id} LOST`,
      ])
      if (hostId === 2) await executions.finish(member, 't1')
      const late = { status: 'FAILED', exitCode: 3, signal: null, completedAt: at } as const
      await executions.late('t1', hostId, late)
      await executions.late('t1', hostId, { ...late, exitCode: 4 })
    }
    const remains = await results.read('t1')
    t.deepEqual(
      remains?.results.map(({ lateResult }) => lateResult?.exitCode),
      [3, 3],
    )
    await t.throwsAsync(executions.cancel('t1'), { instanceOf: RsmError, code: 'conflict' })
  })

  test('a part of a task is read in plan order, while it runs and after its end', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions, results } = opened
    const member = await begun(opened, [5, 4, 3, 2, 1])
    const parts = [
      { offset: 0, limit: 2 },
      { offset: 3, limit: 9 },
      { offset: 5, limit: 1 },
      { hostIds: [3, 9] },
    ]
    const inPlan = [[5, 4], [2, 1], [], [3]]
    for (const [at, part] of parts.entries()) {
      const running = await executions.page('t1', part)
      t.deepEqual(
        running.map(({ execution }) => execution.hostId),
        inPlan[at],
      )
    }
    await executions.cancel('t1')
    await executions.finish(member, 't1')
    for (const [at, part] of parts.entries()) {
      const remains = await results.read('t1', part)
      t.deepEqual(
        remains?.results.map(({ hostId }) => hostId),
        inPlan[at],
      )
      t.deepEqual(await executions.page('t1', part), [])
    }
  })

  test('a cancel while a task is being ended is not lost, and the task ends once', async (t) => {
    const opened = await make((end) => t.teardown(end))
    const { executions, store } = opened
    const member = await begun(opened, [1])
    await executions.transition(asUnreachable(member, [{ id: 't1/1', error: 'gone' }]))
    const ending = [executions.finish(member, 't1'), executions.finish(member, 't1')]
    const isCancelled = await executions.cancel('t1').then(
      () => true,
      () => false,
    )
    const ends = (await Promise.all(ending)).filter((end) => end !== null)
    t.is(ends.length, 1)
    t.deepEqual(await store.get('tasks', 't1'), ends[0])
    t.is(ends[0]?.status, isCancelled ? 'CANCELLED' : 'FAILED')
    t.is(ends[0]?.cancelRequestedAt !== null, isCancelled)
  })

  test('random steps make only legal changes, keep counts and cursors true, and send nothing twice', async (t) => {
    const hosts = fc.integer({ min: 1, max: 2 })
    const ids = fc.constantFrom('t1/1', 't1/2', 't2/1', 't2/2')
    const age = fc.constantFrom('present', 'former')
    const step = fc.oneof(
      fc.record({ step: fc.constant('take' as const), host: hosts, link: age }),
      fc.record({ step: fc.constant('relink' as const), host: hosts }),
      fc.record({ step: fc.constant('return' as const), host: hosts, link: age }),
      fc.record({ step: fc.constant('lose' as const), host: hosts, link: age }),
      fc.record({ step: fc.constant('settle' as const), id: ids, exitCode: fc.integer({ min: 0, max: 1 }) }),
      fc.record({ step: fc.constant('due' as const), id: ids, by: age }),
      fc.record({ step: fc.constant('skip' as const), id: ids, by: age }),
      fc.record({ step: fc.constant('unreachable' as const), id: ids, by: age }),
      fc.record({ step: fc.constant('cancel' as const), task: fc.constantFrom('t1', 't2') }),
    )
    const run = async (steps: (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
      const ends: (() => Promise<void>)[] = []
      try {
        await runOn(await make((end) => ends.push(end)), steps)
      } finally {
        for (const end of ends.toReversed()) await end()
      }
    }
    const runOn = async (
      opened: OpenedExecutions,
      steps: (typeof step extends fc.Arbitrary<infer S> ? S : never)[],
    ) => {
      const { executions, ownership } = opened
      const former = await ownership.join('server')
      const member = await ownership.join('server')
      await ownership.claim(member, ['t1', 't2'])
      const known = new Map<string, ResultStatus>()
      /** Claims under which an execution was marked as sent and not returned. */
      const sent = new Map<string, number>()
      for (const taskId of ['t1', 't2']) {
        const all = [1, 2].map((hostId, at) => ({ ...execution(taskId, hostId), position: at }))
        for (const { id, status } of all) known.set(id, status)
        await executions.create(task(taskId, { hostCount: 2 }), all, none)
      }
      const claims = new Map<number, LinkClaim[]>()
      const relink = async (host: number) => {
        const claim = await claimOf(opened, host, member)
        claims.set(host, [...(claims.get(host) ?? []), claim])
        for (const { execution: one } of await executions.takeOver(claim, new Set()))
          sent.set(one.id, claim.epoch)
      }
      for (const host of [1, 2, 1, 2]) await relink(host)
      const linkOf = (host: number, which: 'present' | 'former') =>
        claims.get(host)?.at(which === 'present' ? -1 : -2) as LinkClaim
      const ofHost = (host: number) => [...known.keys()].filter((id) => id.endsWith(`/${host}`))
      const shown = new Map<string, ResultStatus>(known)
      const cursors = new Map<string, number>()
      for (const one of steps) {
        const by = 'by' in one && one.by === 'former' ? former : member
        const claim = 'link' in one ? linkOf(one.host, one.link) : undefined
        let changed: Execution[] = []
        if (one.step === 'relink') await relink(one.host)
        else if (one.step === 'cancel') changed = await executions.cancel(one.task)
        else if (one.step === 'settle')
          changed = await executions.settle(one.id, {
            complete: complete(one.id.slice(0, 2), one.exitCode),
            incomplete: false,
          })
        else if (one.step === 'due') changed = await executions.transition(asDue(by, [one.id]))
        else if (one.step === 'skip') changed = await executions.transition(asSkipped(by, [one.id], 'why'))
        else if (one.step === 'unreachable')
          changed = await executions.transition(asUnreachable(by, [{ id: one.id, error: 'why' }]))
        else if (claim && one.step === 'take') {
          changed = await executions.take([offer(claim, 1)])
          for (const { id } of changed) {
            t.false(sent.has(id), `${id} is sent although an agent has it`)
            sent.set(id, claim.epoch)
          }
        } else if (claim && one.step === 'lose')
          changed = await executions.transition(
            asLost(
              { link: claim },
              ofHost(one.host).map((id) => ({ id, error: 'why' })),
            ),
          )
        else if (claim && one.step === 'return') {
          changed = await executions.transition(asReturned(claim, ofHost(one.host)))
          for (const { id } of changed) {
            t.is(sent.get(id), claim.epoch, `${id} is returned by a link without it`)
            sent.delete(id)
          }
        }
        if (by === former || ('link' in one && one.link === 'former')) t.deepEqual(changed, [], one.step)
        for (const { id, status } of changed) {
          const from = known.get(id)
          t.true(
            from !== undefined && mayBecome(from, status),
            `${one.step} makes ${id} ${status} from ${from}`,
          )
          known.set(id, status)
          if (isFinal(status)) sent.delete(id)
        }
        for (const taskId of ['t1', 't2']) {
          const all = (await executions.page(taskId)).map((running) => running.execution)
          const counts = emptyCounts()
          for (const { id, status } of all) {
            t.is(known.get(id), status, `${id} changed without being reported`)
            counts[status]++
          }
          t.deepEqual(await executions.counts(taskId), counts)
          const news = await executions.changes(taskId, cursors.get(taskId) ?? 0)
          cursors.set(taskId, news.cursor)
          for (const { id, status } of news.executions) shown.set(id, status)
        }
        t.deepEqual(shown, known, 'a reader of changes misses one')
      }
      const { executions: next } = await opened.reopen()
      for (const taskId of ['t1', 't2'])
        for (const { execution: one } of await next.page(taskId)) t.is(known.get(one.id), one.status)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), run), { numRuns })
  })
}
