import assert from 'node:assert/strict'
import fc from 'fast-check'
import { RsmError } from '../../../src/core/errors.ts'
import { foldIds } from '../../../src/core/tasks/id-set.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import type { Query, Reads, Store, Transaction } from '../../../src/server/storage/ports/store.ts'
import type { AnyRecord, IndexOf, Noun } from '../../../src/server/storage/records/records.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { cluster, host, script, task, token, user } from '../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()

type Read =
  | { kind: 'get'; noun: Noun; id: number | string }
  | { kind: 'many'; noun: Noun; ids: (number | string)[] }
  | { kind: 'find'; noun: Noun; index: string; key: string | number }
  | { kind: 'query'; noun: Noun; query: Query<Noun> }
type Step =
  | Read
  | { kind: 'put'; noun: Noun; record: AnyRecord }
  | { kind: 'remove'; noun: Noun; id: number | string }
interface Work {
  steps: Step[]
  throws: boolean
}

/**
 * Few values, so that they collide: both cases, digits that sort as numbers, and characters that PostgreSQL text
 * cannot hold.
 */
const letter = fc.constantFrom(
  'a',
  'A',
  'é',
  'É',
  '1',
  '01',
  '10',
  '-',
  '%',
  '_',
  '"',
  '\\',
  '\0',
  '\ud800',
  '\uffff',
  '😀',
)
const text = fc.array(letter, { maxLength: 3 }).map((letters) => letters.join(''))
const name = fc.oneof(fc.constantFrom('web1', 'web10', 'Web2', 'db'), text)
const id = fc.integer({ min: 1, max: 6 })
const taskId = fc.constantFrom('t1', 't2', 't3', 't4', 't5')
const time = fc.constantFrom(
  '2026-01-01T00:00:00.000Z',
  '2026-01-02T00:00:00.000Z',
  '2026-01-03T00:00:00.000Z',
)
const idSet = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 5000 })), {
  maxLength: 12,
})
const tags = fc.dictionary(name, name, { maxKeys: 3 })
const status = fc.constantFrom('RUNNING', 'SUCCESS', 'FAILED')
const role = fc.constantFrom('ADMIN', 'VIEWER')
const agent = fc.option(
  fc.record({
    agentId: name,
    agentVersion: fc.constant('1'),
    registeredAt: time,
    tokenHash: fc.option(name),
    tokenUsed: fc.boolean(),
    enrollmentId: fc.constant(null),
  }),
)

const records = {
  hosts: fc
    .tuple(id, name, fc.record({ ip: text, tags, agent }))
    .map(([own, hostname, more]) => host(own, hostname, more)),
  clusters: fc
    .tuple(id, name, fc.record({ description: text, hostIds: fc.array(id, { maxLength: 4 }) }))
    .map(([own, called, more]) => cluster(own, called, more)),
  scripts: fc
    .tuple(
      id,
      name,
      fc.record({ description: text, category: fc.option(name), tags: fc.array(name, { maxLength: 3 }) }),
    )
    .map(([own, called, more]) => script(own, called, more)),
  users: fc
    .tuple(id, name, fc.record({ email: fc.option(text), role, enabled: fc.boolean() }))
    .map(([own, called, more]) => ({ ...user(own, called), ...more })),
  tokens: fc
    .tuple(id, id, fc.record({ name: fc.option(name), expiresAt: time }))
    .map(([own, owner, more]) => ({ ...token(own, owner), ...more })),
  tasks: fc
    .tuple(
      taskId,
      fc.record({
        status,
        scriptId: fc.option(id),
        createdBy: name,
        completedAt: fc.option(time),
        content: fc.option(text),
        params: tags,
      }),
      fc.option(idSet, { nil: undefined }),
    )
    .map(([own, more, set]) => task(own, { ...more, ...(set && { hostSet: foldIds(set) }) })),
}
type Drawn = keyof typeof records

const given = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const wheres: Record<Drawn, fc.Arbitrary<object>> = {
  hosts: fc.record({
    equals: given(fc.record({ hostname: given(name), agentId: given(fc.option(name)) })),
    contains: given(fc.record({ fields: fc.constant(['hostname', 'ip']), text: given(text) })),
    has: given(fc.record({ tags: given(fc.array(fc.tuple(name, name), { maxLength: 2 })) })),
  }),
  clusters: fc.record({
    contains: given(fc.record({ fields: fc.constant(['name', 'description']), text: given(text) })),
    has: given(fc.record({ hostIds: given(fc.array(id, { maxLength: 2 })) })),
  }),
  scripts: fc.record({
    equals: given(fc.record({ name: given(name), category: given(fc.option(name)) })),
    has: given(fc.record({ tags: given(fc.array(name, { maxLength: 2 })) })),
  }),
  users: fc.record({
    equals: given(fc.record({ role: given(role), enabled: given(fc.boolean()) })),
    contains: given(fc.record({ fields: fc.constant(['username', 'email']), text: given(text) })),
  }),
  tokens: fc.record({
    equals: given(
      fc.record({
        userId: given(id),
        name: given(fc.option(name)),
        kind: given(fc.constantFrom('session', 'personal')),
      }),
    ),
    before: given(fc.record({ expiresAt: given(time) })),
  }),
  tasks: fc.record({
    equals: given(
      fc.record({
        status: given(status),
        scriptId: given(fc.option(id)),
        createdBy: given(name),
        hostSet: given(fc.constant('')),
      }),
    ),
    before: given(fc.record({ completedAt: given(time) })),
    has: given(fc.record({ hostSet: given(fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 2 })) })),
  }),
}
const keys: readonly (readonly [Drawn, string, fc.Arbitrary<string | number>])[] = [
  ['hosts', 'hostname', name],
  ['hosts', 'agentToken', name],
  ['users', 'username', name],
  ['tokens', 'userId', id],
  ['tokens', 'name', name],
  ['tasks', 'status', status],
  ['tasks', 'scriptId', id],
]

const drawn = Object.keys(records) as Drawn[]
const idOf = (noun: Drawn): fc.Arbitrary<number | string> =>
  noun === 'tasks' ? taskId : fc.oneof(id, fc.constantFrom(0, -1, 1.5, 2 ** 60))
const aRead = fc.oneof(
  ...drawn.map((noun) =>
    fc.record({ kind: fc.constant('get' as const), noun: fc.constant(noun), id: idOf(noun) }),
  ),
  ...drawn.map((noun) =>
    fc.record({
      kind: fc.constant('many' as const),
      noun: fc.constant(noun),
      ids: fc.array(idOf(noun), { maxLength: 4 }),
    }),
  ),
  ...keys.map(([noun, index, key]) =>
    fc.record({
      kind: fc.constant('find' as const),
      noun: fc.constant(noun),
      index: fc.constant(index),
      key,
    }),
  ),
  ...drawn.map((noun) =>
    fc.record({
      kind: fc.constant('query' as const),
      noun: fc.constant(noun),
      query: fc
        .tuple(
          given(wheres[noun]),
          given(fc.array(idOf(noun), { maxLength: 3 })),
          fc.record({
            order:
              noun === 'hosts' ? fc.constantFrom('asc', 'desc', 'hostname') : fc.constantFrom('asc', 'desc'),
            offset: given(fc.integer({ min: 0, max: 4 })),
            limit: given(fc.integer({ min: 0, max: 4 })),
          }),
        )
        .map(
          ([where, ids, more]) =>
            ({ where: { ...where, ...(ids && { ids }) }, ...more }) as unknown as Query<Noun>,
        ),
    }),
  ),
)
const aChange = fc.oneof(
  ...drawn.map((noun) =>
    fc.record({
      kind: fc.constant('put' as const),
      noun: fc.constant(noun),
      record: records[noun] as fc.Arbitrary<AnyRecord>,
    }),
  ),
  ...drawn.map((noun) =>
    fc.record({ kind: fc.constant('remove' as const), noun: fc.constant(noun), id: idOf(noun) }),
  ),
)
const aWork: fc.Arbitrary<Work> = fc.record({
  steps: fc.array(fc.oneof({ arbitrary: aChange, weight: 2 }, { arbitrary: aRead, weight: 1 }), {
    maxLength: 8,
  }),
  throws: fc.integer({ max: 4, min: 0 }).map((one) => one === 0),
})

async function answer(reads: Reads, read: Read): Promise<unknown> {
  if (read.kind === 'get') return reads.get(read.noun, read.id)
  if (read.kind === 'many') return reads.getMany(read.noun, read.ids)
  if (read.kind === 'find') return reads.find(read.noun, read.index as IndexOf<Noun>, read.key)
  return reads.query(read.noun, read.query)
}

async function take(tx: Transaction, step: Step): Promise<unknown> {
  if (step.kind === 'put') return tx.put(step.noun, structuredClone(step.record))
  if (step.kind === 'remove') return tx.remove(step.noun, step.id)
  return answer(tx, step)
}

/** Returns the results of a transaction, or its error. */
async function outcome(store: Store, { steps, throws }: Work): Promise<unknown> {
  try {
    return await store.transact(async (tx) => {
      const answers: unknown[] = []
      for (const step of steps) answers.push(await take(tx, step))
      if (throws) throw new RsmError('forbidden', 'no')
      return answers
    })
  } catch (error) {
    return error instanceof RsmError ? error.code : error
  }
}

async function empty(store: Store): Promise<void> {
  await store.transact(async (tx) => {
    for (const noun of drawn) for (const { id: own } of (await tx.query(noun)).items) tx.remove(noun, own)
  })
}

test('the file store and PostgreSQL return the same results for the same transactions', async (t) => {
  const { store: there } = await openStore(t, await (await postgres).database())
  const here = await openJsonStore({ directory: temporaryDirectory(t) })
  t.teardown(() => here.close())
  await fc.assert(
    fc.asyncProperty(
      fc.array(aWork, { maxLength: 8 }),
      fc.array(aRead, { maxLength: 12 }),
      async (all, reads) => {
        await Promise.all([empty(here), empty(there)])
        // Concurrent: many share one PostgreSQL transaction, and each still sees the ones before it.
        const [expected, found] = await Promise.all(
          [here, there].map((store) => Promise.all(all.map((work) => outcome(store, work)))),
        )
        assert.deepEqual(found, expected)
        for (const read of [...reads, ...drawn.map((noun): Read => ({ kind: 'query', noun, query: {} }))])
          assert.deepEqual(await answer(there, read), await answer(here, read), JSON.stringify(read))
      },
    ),
    { numRuns: 100 },
  )
  t.pass()
})
