import type { ExecutionContext } from 'ava'
import fc from 'fast-check'
import { RsmError } from '../../../../../src/core/errors.ts'
import { asNamed, asReturned } from '../../../../../src/server/storage/executions/transitions.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { Database } from '../../../../../src/server/storage/postgres/connection/database.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { executingServer } from '../../../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { execution, task } from '../../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()
const at = '2026-01-01T00:00:00.000Z'
const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
const away = () => new RsmError('unavailable', 'the answer is lost')
const end = (taskId: string) => ({
  complete: { taskId, exitCode: 0, duration: 1, startedAt: at, completedAt: at },
  incomplete: false,
})
const hostCount = 3

/** The fate of a statement: `asked late` fails at once, and is executed later. */
const fates = ['answered', 'not asked', 'not heard', 'asked late', 'heard late'] as const
type Fate = (typeof fates)[number]

/** Sits between a server and its PostgreSQL. */
class Between {
  /** The fate of the next statement that sends, and of the next one whose name starts with the key. */
  sends: Fate = 'answered'
  readonly named = new Map<string, Fate>()
  #late: (() => Promise<unknown>)[] = []
  #answers: (() => void)[] = []
  #held = () => {}

  readonly seen = (database: Database): Database => ({
    ...database,
    ask: async (pool, statement, values) => {
      const fate = this.#fateOf(pool, typeof statement === 'string' ? '' : statement.name)
      const carryOut = () => database.ask<never>(pool, statement, values)
      if (fate === 'asked late') this.#late.push(carryOut)
      if (fate === 'not asked' || fate === 'asked late') throw away()
      const rows = await carryOut()
      if (fate === 'not heard') throw away()
      if (fate === 'heard late')
        await new Promise<void>((resolve) => {
          this.#answers.push(resolve)
          this.#held()
        })
      return rows
    },
  })

  #fateOf(pool: string, name: string): Fate {
    const [key = '', fate] = [...this.named].find(([start]) => name.startsWith(start)) ?? []
    this.named.delete(key)
    if (fate !== undefined || pool !== 'write' || !name.startsWith('executions ')) return fate ?? 'answered'
    // This statement runs every second, regardless of the test.
    if (name === 'executions look') return 'answered'
    const sends = this.sends
    this.sends = 'answered'
    return sends
  }

  get isHolding(): boolean {
    return this.#answers.length > 0
  }

  /** Resolves when an answer is held. */
  held(): Promise<void> {
    return new Promise((resolve) => {
      this.#held = resolve
    })
  }

  answer(): void {
    for (const resolve of this.#answers.splice(0)) resolve()
  }

  async carryOut(): Promise<void> {
    for (const one of this.#late.splice(0)) await one()
  }
}

async function site(t: ExecutionContext, opened = sharedStore, name = 'server') {
  const shared = await opened(await postgres, (ending) => t.teardown(ending))
  const between = new Between()
  const server = await executingServer(shared, name, createLocalHints(), between.seen)
  t.teardown(() => server.close())
  const { ownership, links, executions, system } = server
  const member = await ownership.join(name)
  let hosts = 0
  let tasks = 0
  return {
    executions,
    between,
    shared,
    forward: (seconds: number) => system.forward(seconds),
    link: async (hostId = ++hosts) => {
      await ownership.renew(member)
      const claimed = await links.claim(
        hostId,
        { server: member, agentId: `agent-${hostId}` },
        () => undefined,
      )
      if (!claimed) throw new Error('the claim is refused')
      return claimed.claim
    },
    /** Returns the id of an execution that is due. */
    post: async (hostId: number): Promise<string> => {
      const id = `t${++tasks}`
      await ownership.claim(member, [id])
      const due = { ...execution(id, hostId), position: 0, dueAt: at }
      await executions.create(task(id), [due], async () => null)
      return due.id
    },
  }
}

const which = fc.nat(9)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constant('post' as const), fc.nat(hostCount - 1)) },
  { weight: 6, arbitrary: fc.tuple(fc.constant('take' as const), fc.constantFrom(...fates)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('settle' as const), which) },
  fc.tuple(fc.constant('return' as const), which),
  fc.tuple(fc.constant('name' as const), which),
  fc.tuple(fc.constant('tear' as const), which),
  fc.tuple(
    fc.constantFrom('answer' as const, 'carry out' as const, 'half a minute' as const),
    fc.constant(0),
  ),
)
type Step = Parameters<Parameters<typeof step.map>[0]>[0]

/** Runs the steps and the remaining work over healthy links; rejects if an execution was sent twice or never. */
async function run(
  { executions, between, forward, link, post }: Awaited<ReturnType<typeof site>>,
  steps: readonly Step[],
) {
  const claims = [await link(), await link(), await link()]
  const posted = new Set<string>()
  const sent = new Set<string>()
  const ended = new Set<string>()
  /** Executions that the server lost track of: their next link has them. */
  const torn = new Set<string>()
  let taking = Promise.resolve()

  async function take(capacity: number): Promise<void> {
    const taken = await executions
      .take(claims.map((claim) => ({ claim, capacity, agent })))
      .catch((error: unknown) => {
        if (error instanceof RsmError) return []
        throw error
      })
    for (const { id } of taken) {
      if (sent.has(id)) throw new Error(`${id} was sent again${ended.has(id) ? ' after its end' : ''}`)
      sent.add(id)
    }
  }

  const perform = async ([what, how]: Step): Promise<void> => {
    const open = [...sent].filter((id) => !ended.has(id) && !torn.has(id))
    const id = open[Number(how) % open.length] ?? ''
    const [taskId = '', host] = id.split('/')
    const claim = claims.find(({ hostId }) => hostId === Number(host))
    if (what === 'post') posted.add(await post(claims[how]?.hostId ?? 0))
    else if (what === 'take') {
      if (between.isHolding) return
      between.sends = how
      const held = between.held()
      taking = take(2)
      await Promise.race([taking, held])
    } else if (what === 'answer') {
      between.answer()
      await taking
    } else if (what === 'carry out') await between.carryOut()
    else if (what === 'half a minute') {
      // PostgreSQL ends a statement after 10 s.
      await between.carryOut()
      forward(31)
    } else if (!claim) return
    else if (what === 'settle') {
      await executions.settle(id, end(taskId))
      ended.add(id)
    } else if (what === 'return') {
      await executions.transition(asReturned(claim, [id]))
      sent.delete(id)
    } else if (what === 'name') await executions.transition(asNamed(claim, [id]))
    else {
      between.named.set('output append', 'not heard')
      between.named.set('executions read', 'not asked')
      const piece = { taskId, stream: 'stdout', sequence: 0, data: 'x' } as const
      await executions.append(id, piece, undefined, true).catch(() => undefined)
      torn.add(id)
    }
  }

  for (const one of steps) await perform(one)
  between.answer()
  await taking
  await between.carryOut()
  await take(posted.size)
  const unsent = [...posted].filter((id) => !sent.has(id))
  if (unsent.length > 0) throw new Error(`never sent: ${unsent.join()}`)
}

const endsDuringALook: Step[] = [
  ['post', 0],
  ['take', 'answered'],
  ['take', 'not heard'],
  ['take', 'heard late'],
  ['settle', 0],
  ['answer', 0],
]
const lostSightOf: Step[] = [
  ['post', 0],
  ['take', 'answered'],
  ['take', 'not heard'],
  ['tear', 0],
  ['take', 'answered'],
]
const heardLateAfterAll: Step[] = [
  ['take', 'asked late'],
  ['take', 'answered'],
  ['take', 'heard late'],
  ['post', 0],
  ['half a minute', 0],
]

for (const [of, seed] of [
  ['the same', 1],
  ['other', undefined],
] as const)
  test(`F31 with lost or late answers, each execution is sent exactly once over a link (${of} steps)`, async (t) => {
    const opened = await site(t)
    const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), (steps) =>
      run(opened, steps),
    )
    const examples: [Step[]][] = [[endsDuringALook], [lostSightOf], [heardLateAfterAll]]
    await t.notThrowsAsync(
      fc.assert(property, {
        numRuns: 40,
        examples,
        includeErrorInReport: true,
        ...(seed !== undefined && { seed }),
      }),
    )
  })

test('an execution that another server sent under the number of a lost take is not sent again', async (t) => {
  const a = await site(t, sharedStore, 'a')
  const b = await site(t, async () => a.shared, 'b')
  await a.post(1)
  const former = await a.link(1)
  t.is((await a.executions.take([{ claim: former, capacity: 2, agent }])).length, 1)
  const claim = await b.link(1)
  t.is((await b.executions.takeOver(claim, new Set())).length, 1)
  b.between.sends = 'not heard'
  await t.throwsAsync(b.executions.take([{ claim, capacity: 2, agent }]), { instanceOf: RsmError })
  t.deepEqual(await b.executions.take([{ claim, capacity: 2, agent }]), [])
})

test('a take-over of several hosts locks rows by task and then by host, as steps do', async (t) => {
  const { executions, shared, link, post } = await site(t)
  // The task of the second host comes first.
  await post(2)
  await post(1)
  await executions.take([await link(1), await link(2)].map((claim) => ({ claim, capacity: 2, agent })))
  const claims = [await link(1), await link(2)]
  const step = await (await shared.server('step')).database.connect(true)
  t.teardown(() => step.end())
  const lock = (id: string) =>
    step.query(`select from rsm.executions where rec->>'id' = $1 for update nowait`, [id])
  await step.query('begin')
  await lock('t1/2')
  const takingOver = Promise.all(claims.map((claim) => executions.takeOver(claim, new Set())))
  const waits = 'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
  while ((await step.query(waits)).rowCount === 0);
  await t.notThrowsAsync(lock('t2/1'))
  await step.query('commit')
  t.deepEqual(
    (await takingOver).map((its) => its.map((one) => one.execution.id)),
    [['t2/1'], ['t1/2']],
  )
})

test('a take-over sees changes written while it waited for a row, and skips ended executions', async (t) => {
  const { executions, shared, link, post } = await site(t)
  const running = await post(1)
  const ended = await post(1)
  await executions.take([{ claim: await link(1), capacity: 2, agent }])
  const claim = await link(1)
  const step = await (await shared.server('step')).database.connect(true)
  t.teardown(() => step.end())
  await step.query('begin')
  const write = (id: string, part: object) =>
    step.query(`update rsm.executions set rec = rec || $2, rev = rev + 1 where rec->>'id' = $1`, [id, part])
  await write(running, { cancelRequested: true })
  await write(ended, { status: 'FAILED' })
  const takingOver = executions.takeOver(claim, new Set())
  const waits = 'select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'
  while ((await step.query(waits)).rowCount === 0);
  await step.query('commit')
  t.deepEqual(
    (await takingOver).map(({ execution: { id, cancelRequested } }) => [id, cancelRequested]),
    [[running, true]],
  )
})
