import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { realDisk } from '../../../src/disk/disk.ts'
import { createPasswords } from '../../../src/server/access/passwords.ts'
import { openJsonStore } from '../../../src/server/embedded/store/store.ts'
import { createExposition } from '../../../src/server/metrics/exposition.ts'
import { type Counted, createGauges } from '../../../src/server/metrics/gauges.ts'
import { Histogram } from '../../../src/server/metrics/histogram.ts'
import type { Room } from '../../../src/server/metrics/room.ts'
import { parseScrape } from '../../helpers/metrics/scrape.ts'
import { task } from '../../helpers/servers/store-records.ts'

test('a value on a bound of a histogram is within it, one past the last bound is in +Inf alone', async (t) => {
  const histogram = new Histogram('h', 'Help.', [0.1, 1], ['kind'])
  for (const value of [0.1, 0.2, 1, 7]) histogram.of({ kind: 'a "quoted"\\one\n' }).observe(value)
  const { series, of } = parseScrape(await createExposition([histogram])())
  const labels = 'kind="a \\"quoted\\"\\\\one\\n"'
  t.is(of(`h_bucket{${labels},le="0.1"}`), 1)
  t.is(of(`h_bucket{${labels},le="1"}`), 3)
  t.is(of(`h_bucket{${labels},le="+Inf"}`), 4)
  t.is(of(`h_sum{${labels}}`), 8.3)
  t.is(of(`h_count{${labels}}`), 4)
  t.is([...series].filter((name) => name.startsWith('h_')).length, 5)
})

test('queues, the backlog of frames, a store and an audit log that refuse writes show as they stand at the scrape', async (t) => {
  const counted: Counted = {
    version: '1.2.3',
    hosts: async () => ({ ONLINE: 3, OFFLINE: 2, WARNING: 1 }),
    work: async () => ({ tasks: 4, running: 5, waiting: 6 }),
    links: () => ({ open: 7, backlogBytes: 8 }),
    terminals: () => ({ open: 11 }),
    journalQueue: () => 9,
    loginQueue: () => 10,
    room: async () => room,
    readOnly: () => refuses,
    auditRefused: () => refuses,
  }
  let refuses = true
  let room: Room | null = { size: 1e12, available: 12_345 }
  const text = createExposition(createGauges(counted))
  const { of } = parseScrape(await text())
  t.is(of('rsm_store_read_only'), 1)
  t.is(of('rsm_audit_refused'), 1)
  t.is(of('rsm_frame_backlog_bytes'), 8)
  t.is(of('rsm_terminals'), 11)
  t.is(of('rsm_queue_length{queue="journal"}'), 9)
  t.is(of('rsm_queue_length{queue="executions"}'), 6)
  t.is(of('rsm_queue_length{queue="logins"}'), 10)
  t.is(of('rsm_disk_size_bytes'), 1e12)
  t.is(of('rsm_disk_available_bytes'), 12_345)
  refuses = false
  room = null
  const later = parseScrape(await text())
  t.is(later.of('rsm_store_read_only'), 0)
  t.is(later.of('rsm_audit_refused'), 0)
  t.false(later.series.has('rsm_disk_available_bytes'), 'unknown is not zero')
})

test('passwords beyond those that are checked at once wait in the queue of logins', async (t) => {
  const passwords = createPasswords()
  const checks = [1, 2, 3, 4].map((n) => passwords.verify(`password ${n}`, undefined))
  t.is(passwords.queueLength, 2)
  await Promise.all(checks)
  t.is(passwords.queueLength, 0)
})

test('writes that come while the journal is synced wait in its queue, and each sync tells its time', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-metrics-'))
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const times: number[] = []
  const store = await openJsonStore({
    directory,
    disk: { ...realDisk, datasync: async (descriptor) => held.then(() => realDisk.datasync(descriptor)) },
    onSync: (seconds) => times.push(seconds),
  })
  t.teardown(async () => {
    await store.close()
    await rm(directory, { recursive: true, force: true })
  })
  const first = store.transact((tx) => tx.put('tasks', task('t1')))
  for (let turn = 0; turn < 10; turn++) await setImmediate()
  const later = ['t2', 't3'].map((id) => store.transact((tx) => tx.put('tasks', task(id))))
  for (let turn = 0; store.queueLength < 2 && turn < 1000; turn++) await setImmediate()
  t.is(store.queueLength, 2)
  t.deepEqual(times, [])
  release()
  await Promise.all([first, ...later])
  t.is(store.queueLength, 0)
  t.is(times.length, 2)
  t.true(times.every((seconds) => seconds > 0 && seconds < 60))
})
