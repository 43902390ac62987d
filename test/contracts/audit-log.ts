import type { ExecutionContext, TestFn } from 'ava'
import type { AuditEntry } from '../../src/core/audit.ts'
import type { AuditLog } from '../../src/server/storage/ports/audit-log.ts'
import { event, verified } from '../helpers/audit/audit-log.ts'

const ids = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id)

/** Suite for every implementation of AuditLog; a new log belongs to the store `store-1`. */
export function auditLogContract(
  test: TestFn,
  open: (t: ExecutionContext) => Promise<{ log: AuditLog; reopen: () => Promise<AuditLog> }>,
): void {
  test('a new log begins with an entry that names the store', async (t) => {
    const { log } = await open(t)
    const { content } = await log.list({})
    t.like(content[0], { id: 1, action: 'audit.begin', object: { type: 'store', id: 'store-1' } })
    t.is(log.refusal, null)
  })

  test('entries keep the order of the calls, are durable when acknowledged, and extend the same chain after a restart', async (t) => {
    const { log, reopen } = await open(t)
    const written = await Promise.all(Array.from({ length: 200 }, (_, at) => log.append(event(`a.${at}`))))
    t.deepEqual(
      written.map(({ id, action }) => `${id} ${action}`),
      Array.from({ length: 200 }, (_, at) => `${at + 2} a.${at}`),
    )
    const head = await log.head()
    t.deepEqual(head, { id: 201, hash: written.at(-1)?.hash })
    const again = await reopen()
    t.deepEqual(await again.head(), head)
    t.is((await again.append(event('after'))).id, 202)
    t.deepEqual(await verified(again), { entries: 202, fault: null })
  })

  test('an entry that is too long is cut: no request writes more than some KiB', async (t) => {
    const { log } = await open(t)
    const long = 'x'.repeat(100_000)
    const entry = await log.append(
      event(long, {
        object: { type: 'host', id: long, name: long },
        detail: { message: long, changed: Array.from({ length: 1000 }, () => long) },
      }),
    )
    t.true(JSON.stringify(entry).length < 40_000)
    const huge = Object.fromEntries(
      Array.from({ length: 64 }, (_, at) => [`f${at}`, [long, long, long, long]]),
    )
    t.like((await log.append(event('huge', { detail: huge }))).detail, { tooLong: true })
    t.is((await verified(log)).fault, null)
  })

  test('a list is newest first, page by page, and finds a page without reading newer entries', async (t) => {
    const { log } = await open(t)
    await Promise.all(
      Array.from({ length: 999 }, (_, at) => log.append(event('a', { detail: { text: 'y'.repeat(at) } }))),
    )
    const first = await log.list({ size: 3 })
    t.deepEqual(ids(first.content), [1000, 999, 998])
    t.like(first, { page: 0, size: 3, totalElements: 1000, totalPages: 334 })
    for (const [page, size] of [
      [1, 20],
      [7, 100],
      [499, 2],
      [0, 500],
      [1, 500],
      [333, 3],
    ] as const) {
      const { content } = await log.list({ page, size })
      const newest = 1000 - page * size
      t.deepEqual(
        ids(content),
        Array.from({ length: Math.min(size, newest) }, (_, at) => newest - at),
      )
    }
    t.deepEqual((await log.list({ page: 50, size: 20 })).content, [])
  })

  test('a list before an entry continues where a page ended, and counts at most one entry past its own', async (t) => {
    const { log } = await open(t)
    for (let at = 2; at <= 50; at++) await log.append(event(at % 5 ? 'other' : 'fifth'))
    const ids = async (query: Parameters<typeof log.list>[0]) => {
      const { content, totalElements } = await log.list(query)
      return [content.map(({ id }) => id), totalElements]
    }
    t.deepEqual(await ids({ before: 40, size: 3 }), [[39, 38, 37], 4])
    t.deepEqual(await ids({ before: 3, size: 3 }), [[2, 1], 2])
    t.deepEqual(await ids({ before: 1, size: 3 }), [[], 0])
    t.deepEqual(await ids({ before: 9999, size: 1 }), [[50], 2])
    t.deepEqual(await ids({ before: 40, page: 1, size: 3 }), [[36, 35, 34], 7])
    t.deepEqual(await ids({ before: 40, size: 2, action: 'fifth' }), [[35, 30], 3])
    t.deepEqual(await ids({ before: 10, size: 2, action: 'fifth' }), [[5], 1])
    t.deepEqual(await ids({ before: 1, action: 'fifth' }), [[], 0])
    t.deepEqual(await ids({ before: 40, page: 1, size: 2, action: 'fifth' }), [[25, 20], 5])
  })

  test('a list can be filtered by action, actor, object, outcome and time', async (t) => {
    const { log } = await open(t)
    const at = (hour: number) => `2026-11-21T0${hour}:00:00.000Z`
    const bob = { type: 'user', id: 2, name: 'bo"b', tokenId: 9 } as const
    await log.append(event('host.create', { at: at(1), object: { type: 'host', id: 7, name: 'web7' } }))
    await log.append(event('host.update', { at: at(2), object: { type: 'host', id: 7, name: 'web7' } }))
    await log.append(
      event('host.update', { at: at(3), actor: bob, object: { type: 'host', id: 8, name: 'web8' } }),
    )
    await log.append(event('user.login', { at: at(4), actor: bob, outcome: 'REFUSED' }))
    const cases = [
      [{ action: 'host.update' }, [4, 3]],
      [{ actor: 'bo"b' }, [5, 4]],
      [{ actor: 'bo"b', action: 'host.update' }, [4]],
      [{ objectType: 'host' }, [4, 3, 2]],
      [{ objectType: 'host', objectId: '7' }, [3, 2]],
      [{ outcome: 'REFUSED' }, [5]],
      [{ from: at(2), to: at(3) }, [4, 3]],
      [{ action: 'host' }, []],
      [{ objectType: 'host', page: 1, size: 2 }, [2]],
    ] as const
    for (const [query, wanted] of cases) {
      const page = await log.list(query)
      t.deepEqual(ids(page.content), [...wanted], JSON.stringify(query))
    }
    t.like(await log.list({ objectType: 'host', size: 2 }), { totalElements: 3, totalPages: 2 })
  })

  test('stored lines are read oldest first: all of them, those after an entry, or those of a filter', async (t) => {
    const { log } = await open(t)
    const at = (hour: number) => `2026-11-21T0${hour % 10}:00:00.000Z`
    const appended = Array.from({ length: 2999 }, (_, index) => {
      const id = index + 2
      const detail = { text: 'z'.repeat(id % 50) }
      return log.append(event(id % 7 ? 'other' : 'seventh', { at: at(id % 3), detail }))
    })
    await Promise.all(appended)
    const lines = async (which?: Parameters<typeof log.raw>[0]) => {
      const blocks: Buffer[] = []
      for await (const block of log.raw(which)) blocks.push(block)
      const text = Buffer.concat(blocks).toString('utf8')
      t.true(text === '' || text.endsWith('\n'))
      return text.split('\n').slice(0, -1)
    }
    const all = await lines()
    t.is(all.length, 3000)
    for (const after of [1, 2, 777, 2999, 3000, 99_999]) t.deepEqual(await lines({ after }), all.slice(after))
    const seventh = all.filter((line) => line.includes('"action":"seventh"'))
    t.deepEqual(await lines({ action: 'seventh' }), seventh)
    t.deepEqual(await lines({ action: 'seventh', after: 7 }), seventh.slice(1))
    const late = all.filter((line) => line.includes(`"at":"${at(2)}"`))
    t.deepEqual(await lines({ from: at(2), to: at(2) }), late)
    t.deepEqual(await lines({ action: 'none' }), [])
  })
}
