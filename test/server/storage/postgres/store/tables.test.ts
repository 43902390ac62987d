import fc from 'fast-check'
import { foldIds } from '../../../../../src/core/tasks/id-set.ts'
import {
  blocksOfSet,
  blocksWith,
  plainText,
  tableOf,
  uniqueOf,
} from '../../../../../src/server/storage/postgres/store/tables.ts'
import { nouns } from '../../../../../src/server/storage/records/records.ts'
import { openDatabase } from '../../../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()
const stored = nouns.filter((noun) => noun !== 'executions')

test('each noun has a table with a column for every field that queries use', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  for (const noun of stored) {
    const { idType, columns } = tableOf(noun)
    const rows = await database.ask<{ name: string; type: string; collation: string | null }>(
      'api',
      `select attname as name, format_type(atttypid, atttypmod) as type, (select collname from pg_collation c where c.oid = attcollation) as collation
      from pg_attribute where attrelid = $1::regclass and attnum > 0 and attname not in ('rec', 'progress')`,
      [`rsm.${noun}`],
    )
    const there = Object.fromEntries(rows.map(({ name, type }) => [name, type]))
    t.deepEqual(
      there,
      Object.fromEntries([['id', idType], ...columns.map(({ name, type }) => [name, type])]),
      noun,
    )
    for (const { name, type, collation } of rows)
      t.is(collation, type === 'text' ? 'C' : null, `${noun}.${name}`)
  }
})

test('each unique index is a deferred constraint of its table', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  for (const noun of stored) {
    const rows = await database.ask<{ name: string }>(
      'api',
      `select conname as name from pg_constraint where conrelid = $1::regclass and contype = 'u' and condeferred`,
      [`rsm.${noun}`],
    )
    t.deepEqual(
      rows.map(({ name }) => name).toSorted(),
      uniqueOf(noun)
        .map(({ name }) => `${noun}_${name}_key`)
        .toSorted(),
    )
  }
})

test('an id is in a set if one of its blocks is in the blocks of the set', (t) => {
  const id = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 2 ** 32 - 1 }))
  const run = fc
    .tuple(id, fc.integer({ min: 0, max: 30 }))
    .map(([from, length]) => Array.from({ length }, (_, at) => from + at))
  fc.assert(
    fc.property(fc.array(run, { maxLength: 6 }), id, (runs, asked) => {
      const ids = runs.flat().filter((one) => one < 2 ** 32)
      const blocks = new Set(blocksOfSet(foldIds(ids)))
      return blocksWith(asked).some((block) => blocks.has(block)) === ids.includes(asked)
    }),
    { numRuns: 3000 },
  )
  for (const none of [-1, 1.5, Number.NaN, 2 ** 32]) t.deepEqual(blocksWith(none), [])
})

test('a long run of consecutive ids has few blocks', (t) => {
  t.true(blocksOfSet('1-100000').length < 40)
  t.deepEqual(blocksOfSet(''), [])
})

test('PostgreSQL stores any escaped text, and different texts stay different', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  const letter = fc.constantFrom('a', '0', '\0', '\uffff', '\ufdd0', '\ud800', '\udc00', '😀')
  const text = fc.array(letter, { maxLength: 6 }).map((letters) => letters.join(''))
  const texts = [...new Set(fc.sample(text, 500))]
  const [row] = await database.ask<{ back: string[] }>('api', 'select $1::text[] as back', [
    texts.map(plainText),
  ])
  t.deepEqual(row?.back, texts.map(plainText))
  t.is(new Set(row?.back).size, texts.length)
})
