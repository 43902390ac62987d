import type { ExecutionContext, TestFn } from 'ava'
import { WrongOffset } from '../../../../src/server/storage/ports/files.ts'
import { createFiles } from '../../../../src/server/storage/postgres/files.ts'
import { filesContract } from '../../../contracts/files.ts'
import { openDatabase } from '../../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()

async function open(t: ExecutionContext, url?: string) {
  const database = openDatabase(t, url ?? (await (await postgres).database()))
  const room = async () => {
    const text = 'select coalesce(sum(length(data)), 0)::bigint as bytes from rsm.file_chunks'
    const [row] = await database.ask<{ bytes: number }>('api', text)
    return row?.bytes ?? 0
  }
  return { files: createFiles(database), room }
}

// One after the other: each creates a database, and ten at once make a slow machine miss its timeouts.
filesContract(test.serial as TestFn, open)

test.serial(
  'one of two servers that append to a file at the same time succeeds, and the other gets its size',
  async (t) => {
    const url = await (await postgres).database()
    const [a, b] = [(await open(t, url)).files, (await open(t, url)).files]
    async function* of(text: string): AsyncGenerator<Uint8Array> {
      yield Buffer.from(text)
    }
    await a.append('one', 0, of('abc'))
    const both = await Promise.allSettled([a.append('one', 3, of('d')), b.append('one', 3, of('e'))])
    t.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    for (const outcome of both)
      if (outcome.status === 'rejected') t.is((outcome.reason as WrongOffset).offset, 4)
    await b.finish('one', 'sum')
    await t.throwsAsync(a.append('one', 4, of('f')), { instanceOf: WrongOffset })
  },
)
