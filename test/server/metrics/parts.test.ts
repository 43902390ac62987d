import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { Registry } from 'prom-client'
import { RsmError } from '../../../src/core/errors.ts'
import { type Room, realDisk } from '../../../src/disk/durable.ts'
import { createPasswords } from '../../../src/server/access/passwords.ts'
import { type Counted, registerGauges } from '../../../src/server/metrics/gauges.ts'
import { createHttpMetrics } from '../../../src/server/metrics/metrics.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { parseScrape } from '../../helpers/metrics/scrape.ts'
import { task } from '../../helpers/servers/store-records.ts'

test('a value equal to a histogram bound counts within it; one above the last bound counts in +Inf only', async (t) => {
  const registry = new Registry()
  const { answered } = createHttpMetrics(registry)
  const request = { method: 'GET', route: 'a "quoted"\\one\n', status: 200 }
  for (const seconds of [1, 1.2, 5, 7]) answered({ ...request, seconds })
  const { series, of } = parseScrape(await registry.metrics())
  const name = 'rsm_http_request_duration_seconds'
  const labels = 'method="GET",route="a \\"quoted\\"\\\\one\\n",status="200"'
  t.is(of(`${name}_bucket{le="1",${labels}}`), 1)
  t.is(of(`${name}_bucket{le="5",${labels}}`), 3)
  t.is(of(`${name}_bucket{le="+Inf",${labels}}`), 4)
  t.is(of(`${name}_sum{${labels}}`), 14.2)
  t.is(of(`${name}_count{${labels}}`), 4)
  t.is([...series].filter((one) => one.startsWith(name)).length, 11)
})

test('a scrape shows the current queues, frame backlog, and refusals of store and audit log', async (t) => {
  const counted: Counted = {
    version: '1.2.3',
    hosts: async () => ({ ONLINE: 3, OFFLINE: 2, WARNING: 1, NO_LINK: 4 }),
    work: async () => ({ tasks: 4, running: 5, waiting: 6 }),
    links: () => ({ open: 7, backlogBytes: 8 }),
    terminals: () => ({ open: 11 }),
    journalQueue: () => 9,
    loginQueue: () => 10,
    room: async () => room,
    readOnly: () => refuses,
    auditRefused: () => refuses,
    deliveries: () => 14,
    shared: () => null,
  }
  let refuses = true
  let room: Room | null = { size: 1e12, available: 12_345 }
  const registry = new Registry()
  registerGauges(registry, counted)
  const { of } = parseScrape(await registry.metrics())
  t.is(of('rsm_store_read_only'), 1)
  t.is(of('rsm_audit_refused'), 1)
  t.is(of('rsm_webhook_deliveries_waiting'), 14)
  t.is(of('rsm_frame_backlog_bytes'), 8)
  t.is(of('rsm_terminals'), 11)
  t.is(of('rsm_queue_length{queue="journal"}'), 9)
  t.is(of('rsm_queue_length{queue="executions"}'), 6)
  t.is(of('rsm_queue_length{queue="logins"}'), 10)
  t.is(of('rsm_disk_size_bytes'), 1e12)
  t.is(of('rsm_disk_available_bytes'), 12_345)
  refuses = false
  room = null
  const later = parseScrape(await registry.metrics())
  t.is(later.of('rsm_store_read_only'), 0)
  t.is(later.of('rsm_audit_refused'), 0)
  t.false(later.series.has('rsm_disk_available_bytes'), 'unknown is not zero')
})

test('a server on a shared store shows its name, lease and queues, even while the store is unreachable', async (t) => {
  let isAway = false
  const ifReached = async <T>(value: T) => {
    if (isAway) throw new RsmError('unavailable', 'the store cannot be reached just now')
    return value
  }
  const counted: Counted = {
    version: '1.2.3',
    hosts: () => ifReached({ ONLINE: 3, OFFLINE: 2, WARNING: 1, NO_LINK: 4 }),
    work: () => ifReached({ tasks: 4, running: 5, waiting: 6 }),
    links: () => ({ open: 7, backlogBytes: 8 }),
    terminals: () => ({ open: 11 }),
    journalQueue: () => 9,
    loginQueue: () => 10,
    room: async () => null,
    readOnly: () => false,
    auditRefused: () => false,
    deliveries: () => 0,
    shared: () => ({
      name: 'a',
      hasFault: isAway,
      leaseSeconds: isAway ? 0 : 8.5,
      pools: { write: { size: 3, busy: 1, waiting: 0 }, api: { size: 8, busy: 8, waiting: 3 } },
      hints: { isListening: !isAway, lagSeconds: isAway ? null : 0.002, heardSecondsAgo: isAway ? null : 1 },
    }),
  }
  const registry = new Registry()
  registerGauges(registry, counted)
  const { of } = parseScrape(await registry.metrics())
  t.is(of('rsm_server_info{name="a"}'), 1)
  t.is(of('rsm_store_fault'), 0)
  t.is(of('rsm_lease_seconds'), 8.5)
  t.is(of('rsm_store_connections{pool="api"}'), 8)
  t.is(of('rsm_store_waiting{pool="api"}'), 3)
  t.is(of('rsm_hint_lag_seconds'), 0.002)
  t.is(of('rsm_tasks{status="RUNNING"}'), 4)
  isAway = true
  const away = parseScrape(await registry.metrics())
  t.is(away.of('rsm_store_fault'), 1)
  t.is(away.of('rsm_agent_links'), 7)
  t.false(away.series.has('rsm_hosts{status="ONLINE"}'), 'an unknown value is not the last one')
})

test('password checks beyond the concurrent ones wait in the login queue', async (t) => {
  const passwords = createPasswords()
  const checks = [1, 2, 3, 4].map((n) => passwords.verify(`password ${n}`, undefined))
  t.is(passwords.queueLength, 2)
  await Promise.all(checks)
  t.is(passwords.queueLength, 0)
})

test('writes during a sync of the journal wait in its queue, and each sync reports its time', async (t) => {
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
