import test from 'ava'
import { targetOf } from '../../src/cli/views/schedules.ts'
import { RsmError } from '../../src/core/errors.ts'
import type { Schedule } from '../../src/core/protocol/http/schedules.ts'
import { optionFields, optionsOf } from '../../src/web/run/options-of.ts'
import {
  copyFields,
  copyOf,
  copyTaskOf,
  fetchOf,
  fetchTaskOf,
  secretsNamed,
  taskOf,
} from '../../src/web/run/task-of.ts'
import { patchOf, scheduleFields, scheduleOf } from '../../src/web/schedules/schedule-of.ts'

const form = (fields: Record<string, string>) => (name: string) => fields[name] ?? ''
const faultsOf = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    if (error instanceof RsmError) return error.fields.map(({ field }) => field)
    throw error
  }
  return []
}

test('options of a form become those of the API and back without changes', (t) => {
  const options = {
    strategy: 'ROLLING',
    batchSize: [1, '10%', '50%'],
    concurrency: 5,
    maxFailures: '10%',
    pauseSeconds: 1.5,
    timeout: 0,
    queueSeconds: 60,
    runAs: 'deploy',
    workDir: '/srv/app',
    limits: { memoryMB: 512, cpuPercent: 50 },
    limitRate: 10 * 1024 * 1024,
  } as const
  const fields = optionFields({ ...options, batchSize: [1, '10%', '50%'] })
  t.like(fields, { batchSize: '1, 10%, 50%', timeout: '0', limitRate: '10M', 'limits.processes': '' })
  t.deepEqual(optionsOf(form(fields)), options)
  t.deepEqual(optionsOf(form({ strategy: 'PARALLEL' })), { strategy: 'PARALLEL' })
  for (const [text, value] of [
    ['3', 3],
    ['25%', '25%'],
    ['some', 'some'],
  ] as const)
    t.is(optionsOf(form({ strategy: 'ROLLING', batchSize: text })).batchSize, value, text)
  for (const [limitRate, text] of [
    [16_384, '16K'],
    [1_000_000, '1000000'],
    [3 * 1024 ** 3, '3G'],
  ] as const) {
    t.is(optionFields({ limitRate }).limitRate, text)
    t.is(optionsOf(form({ limitRate: text })).limitRate, limitRate)
  }
  t.deepEqual(
    faultsOf(() => optionsOf(form({ limitRate: 'fast' }))),
    ['limitRate'],
  )
})

test('secret params are named once each, and are required', (t) => {
  const secrets = secretsNamed(' TOKEN, KEY\nTOKEN ,')
  t.deepEqual(
    secrets.map(({ name, secret, required }) => [name, secret, required]),
    [
      ['TOKEN', true, true],
      ['KEY', true, true],
    ],
  )
  const typed = { content: 'true', type: 'BASH', strategy: 'PARALLEL', params: 'A=1', 'param TOKEN': 'x' }
  t.like(taskOf(form(typed), { hostIds: [1] }, secrets), { params: { A: '1' }, secretParams: { TOKEN: 'x' } })
})

test('copy and fetch tasks follow their fields, and an error lists all faulty fields', (t) => {
  const copy = {
    fileId: '',
    path: '/srv/site',
    kind: 'TREE',
    mode: '0640',
    owner: 'www',
    backup: true,
  } as const
  const file = { name: 'site.tar', size: 10 }
  const plan = { selector: 'web*', strategy: 'PARALLEL' }
  t.deepEqual(copyTaskOf(form({ ...copyFields(copy), ...plan }), undefined, file), {
    copy,
    target: { selector: 'web*' },
    strategy: 'PARALLEL',
  })
  t.is(copyOf(form({ 'copy.path': '/srv/' }), file).path, '/srv/site.tar', 'with the name of the file')
  t.is(copyOf(form({ 'copy.path': '/srv/', 'copy.kind': 'TREE' }), file).path, '/srv/', 'into the directory')
  const diff = { 'copy.path': '/f', 'copy.check': 'DIFF' }
  t.deepEqual(
    [
      { ...diff, 'copy.kind': 'TREE' },
      { ...diff, secret: 'true' },
      { ...diff, 'copy.path': 'f', 'copy.mode': 'rwx' },
      { 'copy.path': '/srv/' },
    ].map((fields) => faultsOf(() => copyOf(form(fields), undefined))),
    [['copy.check'], ['copy.check'], ['copy.path', 'copy.mode'], ['copy.path']],
  )
  const fetch = { 'fetch.path': ' /var/log/%h ', 'fetch.kind': 'TREE', 'fetch.follow': 'true' }
  t.deepEqual(fetchTaskOf(form({ ...fetch, strategy: 'PARALLEL' }), { hostIds: [1] }), {
    fetch: { path: '/var/log/%h', kind: 'TREE', follow: true },
    target: { hostIds: [1] },
    strategy: 'PARALLEL',
  })
  t.deepEqual(
    faultsOf(() => fetchOf(form({ 'fetch.path': '/var/log/' }))),
    ['fetch.path'],
  )
})

const schedule = {
  name: 'nightly',
  cron: '@daily',
  everySeconds: null,
  at: null,
  timezone: 'UTC',
  scriptId: null,
  script: { type: 'BASH', content: 'pg_dump', name: 'backup.sh', timeout: 600 },
  copy: null,
  target: { selector: '@db' },
  params: {},
  secretParams: ['TOKEN'],
  verify: { script: { content: 'check', timeout: 9 }, retries: 2 },
  stdin: { fileId: '01A' },
  limitRate: 16_384,
  overlap: 'SKIP',
  missed: 'ONCE',
  missedWithinSeconds: 3600,
  jitterSeconds: 0,
  from: null,
  until: null,
} as unknown as Schedule
const fieldsOf = (of: Schedule) => ({ name: of.name, selector: '@db', ...scheduleFields(of, []) })

test('a schedule keeps values without a field in the form: script name, timeouts, stdin file, secret params', (t) => {
  const fields = fieldsOf(schedule)
  const chosen = { kind: 'cron', isCopy: false, schedule } as const
  const before = scheduleOf(form(fields), chosen)
  t.like(before, { stdin: { fileId: '01A' }, limitRate: 16_384 })
  const changed = (more: object, other = {}) =>
    patchOf(before, scheduleOf(form({ ...fields, ...more }), { ...chosen, ...other }))
  t.deepEqual(changed({}), {})
  t.deepEqual(changed({ content: 'pg_dumpall' }), {
    script: { type: 'BASH', content: 'pg_dumpall', name: 'backup.sh', timeout: 600 },
  })
  t.like(changed({ 'verify.script.content': 'check --all' }), {
    verify: { script: { content: 'check --all', timeout: 9 }, retries: 2 },
  })
  t.deepEqual(changed({ limitRate: '', noStdin: 'true' }), { stdin: null, limitRate: null })
  t.deepEqual(changed({}, { file: { name: 'f', size: 1 } }), { stdin: { fileId: '' } })
})

test('a target that is not a selector stays with a schedule until a selector is written', (t) => {
  const target = { clusters: ['My DB'], tags: ['role=db'], exclude: ['db9'] }
  const kept = { ...schedule, target }
  const fields = { ...fieldsOf(kept), selector: '' }
  const chosen = { kind: 'cron', isCopy: false, schedule: kept } as const
  t.deepEqual(scheduleOf(form(fields), chosen).target, target)
  t.deepEqual(scheduleOf(form({ ...fields, selector: 'db1' }), chosen).target, { selector: 'db1' })
  t.is(targetOf(kept), 'cluster My DB, tagged role=db, except db9')
  t.is(targetOf({ target: { all: true } }), 'all hosts')
})

test('a schedule that copies keeps its file and its other values, and another file replaces the copy', (t) => {
  const copy = { fileId: '01A', path: '/etc/motd', kind: 'FILE', sourceMode: '0755', backup: true } as const
  const copying: Schedule = { ...schedule, script: null, copy }
  const { stdin: _, verify: __, ...plain } = copying
  const fields = fieldsOf(plain)
  const chosen = { kind: 'cron', isCopy: true, schedule: plain } as const
  const before = scheduleOf(form(fields), chosen)
  t.deepEqual(before.copy, copy)
  const now = scheduleOf(form({ ...fields, 'copy.path': '/etc/issue' }), chosen)
  t.deepEqual(patchOf(before, now), { copy: { ...copy, path: '/etc/issue' } })
  const { sourceMode: ___, ...others } = copy
  const other = scheduleOf(form(fields), { ...chosen, file: { name: 'motd', size: 9 } })
  t.deepEqual(patchOf(before, other), { copy: { ...others, fileId: '' } })
  t.deepEqual(
    faultsOf(() => scheduleOf(form(fields), { kind: 'cron', isCopy: true })),
    ['copy.fileId'],
  )
})
