import { once } from 'node:events'
import { appendFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { AuditEntry } from '../../../src/core/protocol/http/audit.ts'
import { type Disk, realDisk } from '../../../src/disk/append-log.ts'
import { createLog } from '../../../src/server/log.ts'
import { auditDirectory, event, openLog, verified } from '../../helpers/audit/audit-log.ts'

const ids = (entries: readonly AuditEntry[]) => entries.map(({ id }) => id)
const fault = (code: string) => Object.assign(new Error(code), { code })

test('a new log begins with an entry that names the store, in a file of its owner alone', async (t) => {
  const directory = join(await auditDirectory(t), 'audit')
  const log = await openLog(directory)
  t.teardown(() => log.close())
  const { content } = await log.list({})
  t.like(content[0], { id: 1, action: 'audit.begin', object: { type: 'store', id: 'store-1' } })
  t.is((await stat(directory)).mode & 0o777, 0o700)
  t.is((await stat(join(directory, 'audit.log'))).mode & 0o777, 0o600)
})

test('entries keep the order of the calls, are on disk when told, and the chain goes on after a restart', async (t) => {
  const directory = await auditDirectory(t)
  let log = await openLog(directory)
  const written = await Promise.all(Array.from({ length: 200 }, (_, at) => log.append(event(`a.${at}`))))
  t.deepEqual(
    written.map(({ id, action }) => `${id} ${action}`),
    Array.from({ length: 200 }, (_, at) => `${at + 2} a.${at}`),
  )
  const lines = (await readFile(join(directory, 'audit.log'), 'utf8')).trimEnd().split('\n')
  t.deepEqual(JSON.parse(lines.at(-1) ?? ''), written.at(-1))
  const head = log.head()
  await log.close()
  log = await openLog(directory)
  t.teardown(() => log.close())
  t.deepEqual(log.head(), head)
  t.is((await log.append(event('after'))).id, 202)
  t.deepEqual(await verified(log), { entries: 202, fault: null })
})

test('what does not fit an entry is cut: no request writes more than some KiB', async (t) => {
  const log = await openLog(await auditDirectory(t))
  t.teardown(() => log.close())
  const long = 'x'.repeat(100_000)
  const entry = await log.append(
    event(long, {
      object: { type: 'host', id: long, name: long },
      detail: { message: long, changed: Array.from({ length: 1000 }, () => long) },
    }),
  )
  t.true(JSON.stringify(entry).length < 40_000)
  const huge = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`f${at}`, [long, long, long, long]]))
  t.like((await log.append(event('huge', { detail: huge }))).detail, { tooLong: true })
  t.is((await verified(log)).fault, null)
})

test('a list is newest first, page by page, and finds the page without reading what is newer', async (t) => {
  const log = await openLog(await auditDirectory(t))
  t.teardown(() => log.close())
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

test('a list before an entry goes on where a page ended, and counts no further than one past its own', async (t) => {
  const log = await openLog(await auditDirectory(t))
  t.teardown(() => log.close())
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

test('a list takes filters by action, actor, object, outcome and time', async (t) => {
  const log = await openLog(await auditDirectory(t))
  t.teardown(() => log.close())
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

test('a torn end is cut off, kept beside the log, and said in it', async (t) => {
  for (const torn of ['{"id":3,"at":"2026', '\0'.repeat(5000), '\0\0\0\n', '{"id":3}\n{"id":']) {
    const directory = await auditDirectory(t)
    let log = await openLog(directory)
    await log.append(event('before'))
    const head = log.head()
    await log.close()
    await appendFile(join(directory, 'audit.log'), torn)
    log = await openLog(directory)
    const { content } = await log.list({})
    t.like(content[0], { id: head.id + 1, action: 'audit.repair', outcome: 'FAILED' })
    t.is(content[0]?.detail['bytes'], torn.length)
    t.deepEqual(await verified(log), { entries: 3, fault: null })
    await log.close()
    const beside = (await readdir(directory)).filter((name) => name.startsWith('audit.log.broken-'))
    t.is(beside.length, 1)
    t.is(await readFile(join(directory, beside[0] ?? ''), 'utf8'), torn)
  }
})

test('S11 what is damaged in the middle is neither repaired nor hidden: lists show it, the verifier says where', async (t) => {
  const directory = await auditDirectory(t)
  const path = join(directory, 'audit.log')
  let log = await openLog(directory)
  for (let at = 0; at < 20; at++) await log.append(event('a'))
  await log.close()
  const lines = (await readFile(path, 'utf8')).split('\n')
  lines[9] = 'not what was there'
  lines[4] = ''
  await writeFile(path, lines.join('\n'))
  log = await openLog(directory)
  t.teardown(() => log.close())
  t.like((await verified(log)).fault, { kind: 'unreadable', line: 5 })
  for (const query of [{ size: 50 }, { action: 'audit.unreadable' }]) {
    const { content } = await log.list(query)
    const damaged = content.filter(({ action }) => action === 'audit.unreadable')
    t.is(damaged.length, 2)
    t.true(damaged.every(({ outcome, detail }) => outcome === 'FAILED' && Number(detail['offset']) > 0))
  }
  for (let page = 0; page < 22; page++) await t.notThrowsAsync(log.list({ page, size: 1 }))
})

test('a log that was cut from outside while it is open is still listed', async (t) => {
  const directory = await auditDirectory(t)
  const log = await openLog(directory)
  t.teardown(() => log.close())
  for (let at = 0; at < 20; at++) await log.append(event('a'))
  await truncate(join(directory, 'audit.log'), 1000)
  await t.notThrowsAsync(log.list({ size: 50 }))
  await t.notThrowsAsync(log.list({ page: 3, size: 5 }))
  t.not((await verified(log)).fault, null)
})

test('F04 a full disk refuses entries, keeps the log whole, and is recovered from by itself', async (t) => {
  let full = false
  const disk: Disk = {
    ...realDisk,
    async write(descriptor, data, position) {
      if (!full) return realDisk.write(descriptor, data, position)
      if (data.length < 10) throw fault('ENOSPC')
      // As a full disk does: short first.
      return realDisk.write(descriptor, data.subarray(0, data.length - 9), position)
    },
  }
  const told = new EventTarget()
  const quiet = createLog('ERROR')
  const log = await openLog(await auditDirectory(t), {
    disk,
    probeMilliseconds: 10,
    log: { ...quiet, info: () => told.dispatchEvent(new Event('room')), warn: () => undefined },
  })
  t.teardown(() => log.close())
  await log.append(event('before'))
  full = true
  const results = await Promise.allSettled([log.append(event('a')), log.append(event('b'))])
  for (const result of results)
    t.true(
      result.status === 'rejected' &&
        result.reason instanceof RsmError &&
        result.reason.code === 'unavailable',
    )
  t.regex(log.refusal ?? '', /full/)
  await t.throwsAsync(log.append(event('c')), { message: /full/ })
  t.deepEqual(await verified(log), { entries: 2, fault: null })
  const room = once(told, 'room')
  full = false
  // The log's own timer keeps no process alive, and this test may be the only one that runs.
  const awake = setInterval(() => undefined, 1000)
  await room
  clearInterval(awake)
  t.is(log.refusal, null)
  await log.append(event('after'))
  const { content } = await log.list({})
  t.deepEqual(
    content.map(({ id, action }) => `${id} ${action}`),
    ['4 after', '3 audit.resume', '2 before', '1 audit.begin'],
  )
  t.is(content[1]?.detail['refused'], 3)
  t.deepEqual(await verified(log), { entries: 4, fault: null })
})

test('a failed fsync is fatal and never tried again', async (t) => {
  let syncs = 0
  let broken = false
  const fatal: unknown[] = []
  const log = await openLog(await auditDirectory(t), {
    onFatal: (error) => fatal.push(error),
    disk: {
      ...realDisk,
      async datasync(descriptor) {
        syncs++
        if (broken) throw fault('EIO')
        return realDisk.datasync(descriptor)
      },
    },
  })
  t.teardown(() => log.close())
  const before = syncs
  broken = true
  await t.throwsAsync(log.append(event('a')), { message: /disk failed/ })
  broken = false
  await t.throwsAsync(log.append(event('b')))
  t.is(syncs, before + 1)
  t.is(fatal.length, 1)
})
