import test from 'ava'
import { allEntries } from '../../../src/client/services/audit.ts'
import type { AuditEntry } from '../../../src/core/audit.ts'
import { auditDirectory, event, openLog } from '../../helpers/audit/audit-log.ts'

const entry = (id: number) => ({ id, action: 'x' }) as AuditEntry

test('allEntries returns each entry of a log once, even if the log grows between pages', async (t) => {
  const log = await openLog(await auditDirectory(t))
  t.teardown(() => log.close())
  await Promise.all(Array.from({ length: 1299 }, (_, at) => log.append(event(at % 2 ? 'odd' : 'even'))))
  for (const query of [{}, { action: 'odd' }]) {
    const { totalElements } = await log.list(query)
    const { content, ...page } = await allEntries(async (paging) => {
      const got = await log.list(paging)
      await log.append(event('odd'))
      return got
    }, query)
    t.is(page.totalElements, totalElements)
    t.is(content.length, totalElements)
    t.is(new Set(content.map(({ id }) => id)).size, totalElements)
  }
  const some = await allEntries((paging) => log.list(paging), {}, 600)
  t.is(some.content.length, 600)
  t.true(some.totalElements > 1300)
})

test('damaged lines, which have no id, do not stop a list of all entries and are listed once', async (t) => {
  const ids = Array.from({ length: 2600 }, (_, at) => 2600 - at)
  // Damaged lines, which the server shows without id: 2101 at the end of a page, more than a whole page from 1900 on.
  const shown = ids.map((id) => (id === 2101 || (id <= 1900 && id > 1200) ? entry(0) : entry(id)))
  let calls = 0
  const { content } = await allEntries(async ({ page = 0, size = 20, before = 2601 }) => {
    t.true(++calls < 20)
    const from = ids.indexOf(Math.min(before, 2601) - 1) + page * size
    const total = ids.length - ids.indexOf(Math.min(before, 2601) - 1)
    return {
      content: shown.slice(from, from + size),
      page,
      size,
      totalElements: total,
      totalPages: Math.ceil(total / size),
    }
  }, {})
  t.deepEqual(
    content.map(({ id }) => id),
    shown.map(({ id }) => id),
  )
})

test('an entry with a manipulated id cannot make a list of all entries loop', async (t) => {
  let calls = 0
  const { content } = await allEntries(async ({ page = 0, size = 20, before = 1000 }) => {
    const from = 1000 - Math.min(before, 1000) + page * size
    const all = Array.from({ length: 1000 }, (_, at) => entry(at === 499 ? 1_000_000 : 999 - at + 1))
    t.true(++calls < 10)
    const rest = 1000 - from
    return {
      content: all.slice(from, from + size),
      page,
      size,
      totalElements: rest,
      totalPages: page + Math.ceil(rest / size),
    }
  }, {})
  t.true(content.some(({ id }) => id === 1))
})
