import { once } from 'node:events'
import { appendFile, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { RsmError } from '../../../../src/core/errors.ts'
import { type Disk, realDisk } from '../../../../src/disk/durable.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { auditLogContract } from '../../../contracts/audit-log.ts'
import { auditDirectory, event, openLog, verified } from '../../../helpers/audit/audit-log.ts'

const fault = (code: string) => Object.assign(new Error(code), { code })

auditLogContract(test, async (t) => {
  const directory = await auditDirectory(t)
  const open = async () => {
    const log = await openLog(directory)
    t.teardown(() => log.close())
    return log
  }
  const log = await open()
  const reopen = async () => {
    await log.close()
    return open()
  }
  return { log, reopen }
})

test('a new log begins with an entry that names the store, in a file that only its owner can read', async (t) => {
  const directory = join(await auditDirectory(t), 'audit')
  const log = await openLog(directory)
  t.teardown(() => log.close())
  const { content } = await log.list({})
  t.like(content[0], { id: 1, action: 'audit.begin', object: { type: 'store', id: 'store-1' } })
  t.is((await stat(directory)).mode & 0o777, 0o700)
  t.is((await stat(join(directory, 'audit.log'))).mode & 0o777, 0o600)
})

test('a torn end is cut off, kept beside the log, and recorded in it', async (t) => {
  for (const torn of ['{"id":3,"at":"2026', '\0'.repeat(5000), '\0\0\0\n', '{"id":3}\n{"id":']) {
    const directory = await auditDirectory(t)
    let log = await openLog(directory)
    await log.append(event('before'))
    const head = await log.head()
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

test('S11 damage in the middle is neither repaired nor hidden: lists show it and the verifier locates it', async (t) => {
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

test('a log truncated by another program while open can still be listed', async (t) => {
  const directory = await auditDirectory(t)
  const log = await openLog(directory)
  t.teardown(() => log.close())
  for (let at = 0; at < 20; at++) await log.append(event('a'))
  await truncate(join(directory, 'audit.log'), 1000)
  await t.notThrowsAsync(log.list({ size: 50 }))
  await t.notThrowsAsync(log.list({ page: 3, size: 5 }))
  t.not((await verified(log)).fault, null)
})

test('F04 a full disk refuses entries, keeps the log whole, and recovers automatically', async (t) => {
  let full = false
  const disk: Disk = {
    ...realDisk,
    async write(descriptor, data, position) {
      if (!full) return realDisk.write(descriptor, data, position)
      if (data.length < 10) throw fault('ENOSPC')
      // A full disk writes part of the data first.
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

test('a failed fsync is fatal and never retried', async (t) => {
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
