/** Fills a store with finished tasks, in a process of its own: `node seed.js DIRECTORY COUNT`. */

import { openJsonStore } from '../../src/server/storage/files/store/store.ts'
import { opaqueId } from '../../src/server/storage/ids.ts'
import type { TaskRecord } from '../../src/server/storage/records/task.ts'

const [directory = '', count = '0'] = process.argv.slice(2)
const perTransaction = 100
const scripts = 200
const users = ['admin', 'deploy', 'alice.liddell', 'nightly-maintenance']
const firstTime = Date.UTC(2026, 0, 1)
const secondsApart = 25

function finished(index: number): TaskRecord {
  const created = firstTime + index * secondsApart * 1000 + (index % 997)
  const duration = 400 + ((index * 7919) % 60_000)
  const failed = index % 10 === 3
  const hostCount = 1 + (index % 50)
  const scriptId = index % 4 === 0 ? null : 1 + (index % scripts)
  const at = new Date(created).toISOString()
  const none = { PENDING: 0, RUNNING: 0, SUCCESS: 0, FAILED: 0, TIMEOUT: 0 }
  return {
    id: opaqueId(created),
    status: failed ? 'FAILED' : 'SUCCESS',
    hostCount,
    counts: {
      ...none,
      SUCCESS: failed ? hostCount - 1 : hostCount,
      FAILED: failed ? 1 : 0,
      CANCELLED: 0,
      SKIPPED: 0,
      UNREACHABLE: 0,
      LOST: 0,
    },
    strategy: index % 5 === 0 ? 'ROLLING' : 'PARALLEL',
    batchSize: index % 5 === 0 ? '25%' : null,
    concurrency: null,
    maxFailures: null,
    pauseSeconds: 0,
    queueSeconds: null,
    scriptId,
    scriptVersion: scriptId === null ? null : 1 + (index % 7),
    scriptName: scriptId === null ? null : `deploy-service-${scriptId}`,
    type: 'BASH',
    content: null,
    params: { RELEASE: `2026.${index % 12}.${index}` },
    secretParams: null,
    timeout: 300,
    workDir: null,
    runAs: null,
    maxOutputBytes: 64 * 1024 * 1024,
    clusterId: index % 3 === 0 ? 1 + (index % 20) : null,
    createdBy: users[index % users.length] ?? 'admin',
    createdById: 1 + (index % users.length),
    createdAt: at,
    startedAt: at,
    completedAt: new Date(created + duration).toISOString(),
    duration,
    cancelRequestedAt: null,
    pauseUntil: null,
  }
}

const store = await openJsonStore({ directory })
for (let from = 0; from < Number(count); from += perTransaction)
  await store.transact((tx) => {
    for (let index = from; index < from + perTransaction; index++) tx.put('tasks', finished(index))
  })
await store.close()
