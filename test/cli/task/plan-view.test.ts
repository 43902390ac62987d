import test from 'ava'
import { batchLines, orderLines, planView } from '../../../src/cli/task/plan-view.ts'
import type { ExecutionOptions } from '../../../src/core/protocol/http/tasks.ts'

const script = { name: null, type: 'BASH', text: 'x', timeout: null } as const

function planOf(count: number, options: ExecutionOptions) {
  const hosts = Array.from({ length: count }, (_, at) => ({
    id: at + 1,
    hostname: `web${at + 1}`,
    status: 'ONLINE' as const,
  }))
  return planView(hosts, options, script, 600)
}

test('a long plan folds consecutive batches of one size, and lists canaries separately', (t) => {
  const plan = planOf(1000, { strategy: 'ROLLING', batchSize: [1, '1%'] })
  t.is(plan.batches.length, 101)
  t.deepEqual(batchLines(plan.batches), [
    'batch 1 (1): web1',
    'batches 2-100 (10 each): web[2-991]',
    'batch 101 (9): web[992-1000]',
  ])
})

test('a plan lists all options, and the names of secret params but never their values', (t) => {
  const plan = planOf(10, {
    strategy: 'PARALLEL',
    concurrency: 2,
    maxFailures: '25%',
    timeout: 0,
    queueSeconds: 60,
    runAs: 'deploy',
    workDir: '/srv',
    limits: { processes: 100 },
    params: { VERSION: '1.2.3' },
    secretParams: { PASSWORD: 'hush' },
  })
  t.deepEqual(orderLines(plan), [
    'strategy: parallel, at most 2 hosts at once, stops after more than 2 failures',
    'timeout: none',
    'deadline: 600 s for all of it',
    'queue: 60 s for a host to be reachable',
    'run as: deploy',
    'workdir: /srv',
    'limits: processes 100',
    'script: ad hoc (BASH)',
    'VERSION=1.2.3',
    'PASSWORD=(secret)',
  ])
  t.false(JSON.stringify(plan).includes('hush'))
})
