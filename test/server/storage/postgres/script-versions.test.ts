import { createScriptVersions } from '../../../../src/server/storage/postgres/script-versions.ts'
import { scriptVersion as script, scriptVersionsContract } from '../../../contracts/script-versions.ts'
import { believed } from '../../../helpers/faults/believed-clock.ts'
import { openDatabase } from '../../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()
const day = 24 * 3600_000

scriptVersionsContract(test, async (t, most) =>
  createScriptVersions(openDatabase(t, await (await postgres).database()), most),
)

test('A04 versions moved aside are removed after the retention time', async (t) => {
  const database = openDatabase(t, await (await postgres).database())
  const versions = createScriptVersions(database)
  const now = Date.now()
  const age = (at: number) => believed(() => at).age()
  const rows = async () =>
    (
      await database.ask<{ id: number }>('api', 'select script_id as id from rsm.script_versions order by 1')
    ).map(({ id }) => id)
  for (const id of [1, 2, 3]) await versions.save(script(id, 1))
  await versions.sweep(async (id) => id === 2, 30, age(now), now)
  t.deepEqual(await rows(), [1, 2, 3])
  await versions.sweep(async (id) => id === 2, 30, age(now + 30 * day - 1), now)
  await versions.sweep(async (id) => id === 2, 0, age(now + 90 * day), now)
  t.deepEqual(await rows(), [1, 2, 3])
  await versions.sweep(async (id) => id === 2, 30, age(now + 30 * day), now)
  t.deepEqual(await rows(), [2])
})

test('any script text is read back unchanged', async (t) => {
  const versions = createScriptVersions(openDatabase(t, await (await postgres).database()))
  const content = 'printf "\0\ud800\uffff"\n'
  await versions.save(script(1, 1, content))
  t.is((await versions.read(1, 1))?.content, content)
  t.is(await versions.read(1, 2 ** 60), null)
})
