import test from 'ava'
import { Tables } from '../../../src/server/storage/tables.ts'
import { host, task } from '../../helpers/servers/store-records.ts'

const count = 100_000
const statuses = ['SUCCESS', 'FAILED', 'CANCELLED'] as const
/** Number of different host sets that tasks run on. */
const targets = 40

/** 100,000 tasks, and the number of them read since the last call. */
function filled() {
  const tables = new Tables()
  const looked = new Set<string>()
  for (let at = 0; at < count; at++) {
    const id = String(at).padStart(8, '0')
    const record = task(id, {
      status: statuses[at % 3] ?? 'SUCCESS',
      scriptId: (at % 100) + 1,
      hostSet: `${at % targets}-${(at % targets) + 10}`,
    })
    // Any field but the id.
    for (const field of ['status', 'scriptId', 'clusterId', 'createdBy', 'hostSet', 'completedAt'] as const) {
      const value = record[field]
      Object.defineProperty(record, field, {
        enumerable: true,
        get: () => {
          looked.add(id)
          return value
        },
      })
    }
    tables.apply({ noun: 'tasks', id, record })
  }
  return {
    tables,
    reads: () => {
      const { size } = looked
      looked.clear()
      return size
    },
  }
}

const { tables, reads } = filled()

test('a page of a filtered list of 100,000 tasks reads only the tasks that it shows', (t) => {
  const page = { order: 'desc', offset: 40, limit: 20 } as const
  for (const [where, total] of [
    [{}, count],
    [{ equals: { status: 'FAILED' } }, 33_333],
    [{ equals: { scriptId: 7 } }, 1000],
    [{ equals: { createdBy: 'nobody' } }, 0],
    [{ has: { hostSet: [5] } }, (6 * count) / targets],
  ] as const) {
    reads()
    const found = tables.query('tasks', { where, ...page })
    t.is(reads(), 0, 'the query uses only its indexes')
    t.is(found.total, total)
    t.is(found.items.length, Math.min(20, total))
    const ids = found.items.map(({ id }) => String(id))
    t.deepEqual(ids, ids.toSorted().reverse())
  }
})

test('a query with two filters reads only the records of the more selective one', (t) => {
  reads()
  const where = { equals: { status: 'SUCCESS', scriptId: 7 } } as const
  const { items, total } = tables.query('tasks', { where, order: 'desc', limit: 20 })
  t.is(total, 334)
  t.is(items.length, 20)
  t.true(reads() <= 1000)
})

test('a page sorted by name is found at once after a change, and the order is built only once', (t) => {
  const ordered = new Tables()
  let read = 0
  for (let id = 1; id <= 20_000; id++) {
    const record = host(id, `web${20_001 - id}`)
    const { hostname } = record
    const get = () => {
      read++
      return hostname
    }
    ordered.apply({
      noun: 'hosts',
      id,
      record: Object.defineProperty(record, 'hostname', { enumerable: true, get }),
    })
  }
  const first = () => ordered.query('hosts', { order: 'hostname', limit: 5 }).items.map(({ id }) => id)
  t.deepEqual(first(), [20_000, 19_999, 19_998, 19_997, 19_996])
  read = 0
  t.deepEqual(first(), [20_000, 19_999, 19_998, 19_997, 19_996])
  t.is(read, 0)
  ordered.apply({ noun: 'hosts', id: 20_000, record: host(20_000, 'web1', { ip: '10.0.0.9' }) })
  t.deepEqual(first(), [20_000, 19_999, 19_998, 19_997, 19_996])
  t.true(read < 100, `${read} names were read`)
})
