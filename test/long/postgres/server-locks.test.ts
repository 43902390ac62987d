import { createServerLocks } from '../../../src/server/storage/postgres/cluster.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()

test('housekeeping runs at one server at a time; another one that tries meanwhile skips it', async (t) => {
  const url = await (await postgres).database()
  const [a, b] = [createServerLocks(openDatabase(t, url)), createServerLocks(openDatabase(t, url))]
  let end = () => undefined as void
  const ends = new Promise<void>((resolve) => {
    end = resolve
  })
  let begun = () => undefined as void
  const beginning = new Promise<void>((resolve) => {
    begun = resolve
  })
  const working = a.tryExclusive(() => {
    begun()
    return ends
  })
  await beginning
  t.false(await b.tryExclusive(() => Promise.reject(new Error('another server has the lock'))))
  end()
  t.true(await working)
  let done = 0
  t.true(await b.tryExclusive(async () => void done++))
  t.is(done, 1)
  await t.throwsAsync(
    a.tryExclusive(() => Promise.reject(new Error('broken'))),
    { message: 'broken' },
  )
  t.true(await b.tryExclusive(async () => void done++), 'a failed run releases the lock')
})

test('servers run their startup steps one after the other', async (t) => {
  const url = await (await postgres).database()
  const database = openDatabase(t, url)
  const turns = Array.from({ length: 4 }, () => createServerLocks(openDatabase(t, url)))
  let inside = 0
  let made: string | null = null
  const found = await Promise.all(
    turns.map((turn, at) =>
      turn.exclusive(async () => {
        t.is(++inside, 1)
        for (let n = 0; n < 10; n++) await database.ask('api', 'select')
        made ??= `of ${at}`
        inside--
        return made
      }),
    ),
  )
  t.is(new Set(found).size, 1)
})
