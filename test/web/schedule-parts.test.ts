import test from 'ava'
import type { ScheduleCreate } from '../../src/core/protocol/http/schedules.ts'
import { durationText } from '../../src/core/text/duration.ts'
import { patchOf, previewOf, scheduleOf } from '../../src/web/schedules/schedule-of.ts'
import { webhookOf, webhookPatchOf } from '../../src/web/webhooks/webhook-of.ts'

const form = (fields: Record<string, string>) => (name: string) => fields[name] ?? ''
const command = {
  name: ' nightly ',
  selector: '@db',
  type: 'BASH',
  content: 'uptime',
  strategy: 'PARALLEL',
  overlap: 'SKIP',
  missed: 'ONCE',
}

test('the form becomes the body of a schedule with only the chosen timing', (t) => {
  const typed = form({
    ...command,
    cron: ' @daily ',
    everySeconds: '1h30m',
    timezone: 'UTC',
    jitterSeconds: '1m',
  })
  const rest = {
    name: 'nightly',
    timezone: 'UTC',
    jitterSeconds: 60,
    target: { selector: '@db' },
    script: { type: 'BASH', content: 'uptime', name: 'uptime' },
    strategy: 'PARALLEL',
    overlap: 'SKIP',
    missed: 'ONCE',
  } as const
  t.deepEqual(scheduleOf(typed, { kind: 'cron', isCopy: false }), { ...rest, cron: '@daily' })
  t.deepEqual(scheduleOf(typed, { kind: 'everySeconds', isCopy: false }), { ...rest, everySeconds: 5400 })
  const wrong = t.throws(() =>
    scheduleOf(form({ ...command, missedWithinSeconds: 'soon' }), { kind: 'cron', isCopy: false }),
  )
  t.like(wrong, { fields: [{ field: 'missedWithinSeconds', message: 'use 90s, 5m or 2h' }] })
  t.deepEqual([0, 90, 300, 5400, 7200, 172_800].map(durationText), ['0s', '90s', '5m', '90m', '2h', '2d'])
})

test('a patch contains only changes: removed fields are reset, replaced ones are not', (t) => {
  const before: ScheduleCreate = {
    name: 'nightly',
    cron: '@daily',
    until: '2031-01-01T00:00:00.000Z',
    script: { content: 'true' },
    target: { selector: '@db' },
    params: { A: '1', B: '2' },
  }
  t.deepEqual(patchOf(before, before), {})
  const { cron: _, until: __, ...kept } = before
  const next: ScheduleCreate = {
    ...kept,
    everySeconds: 60,
    params: { B: '3', C: '' },
    secretParams: { KEY: 'x' },
  }
  t.deepEqual(patchOf(before, next), {
    everySeconds: 60,
    until: null,
    params: { A: null, B: '3', C: '' },
    secretParams: { KEY: 'x' },
  })
  const copy = { fileId: '01J', path: '/etc/motd', kind: 'FILE' as const }
  const { script: ___, params: ____, ...rest } = before
  t.deepEqual(patchOf({ ...rest, copy }, { ...rest, script: { content: 'true' } }), {
    script: { content: 'true' },
  })
  t.deepEqual(patchOf(before, { ...before, secretParams: { KEY: 'x' } }, ['TOKEN']), {
    secretParams: { TOKEN: null, KEY: 'x' },
  })
})

test('a preview shows the times and errors that the server would return', (t) => {
  const now = Date.parse('2026-03-28T12:00:00Z')
  t.deepEqual(previewOf({ cron: '30 2 * * *', timezone: 'Europe/Berlin' }, now), {
    times: [
      // 02:30 does not exist in this night.
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
      '2026-03-31T00:30:00.000Z',
      '2026-04-01T00:30:00.000Z',
      '2026-04-02T00:30:00.000Z',
    ],
  })
  t.deepEqual(previewOf({ everySeconds: 60, until: '2026-03-28T12:02:30Z' }, now), {
    times: ['2026-03-28T12:01:00.000Z', '2026-03-28T12:02:00.000Z'],
  })
  t.deepEqual(previewOf({ at: '2026-03-28T11:00:00Z' }, now), {
    faults: [{ field: 'at', message: 'is in the past' }],
  })
  t.like(previewOf({ cron: '* * * * * *' }, now), { faults: [{ field: 'cron' }] })
})

test('the form becomes the body of a webhook, and a change removes an empty selector and keeps the secret', (t) => {
  const typed = { name: 'on call', url: 'https://x.example', format: 'JSON', 'event task.failed': 'on' }
  const body = { name: 'on call', url: 'https://x.example', format: 'JSON', events: ['task.failed'] } as const
  t.deepEqual(webhookOf(form({ ...typed, selector: 'web*', schedule: ' * ', secret: 'whsec_x' })), {
    ...body,
    events: ['task.failed'],
    selector: 'web*',
    schedule: '*',
    secret: 'whsec_x',
  })
  const none = { selector: null, schedule: null, script: null, createdBy: null }
  t.deepEqual(webhookPatchOf(form(typed)), { ...body, events: ['task.failed'], ...none })
  t.like(
    t.throws(() => webhookOf(form({ ...typed, 'event task.failed': '' }))),
    { fields: [{ field: 'events' }] },
  )
})
