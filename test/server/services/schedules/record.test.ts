import test from 'ava'
import type { ScheduleCreate } from '../../../../src/core/protocol/http/schedules.ts'
import { runOptions } from '../../../../src/core/protocol/http/tasks.ts'
import { runsOther, saidBy } from '../../../../src/server/services/schedules/record.ts'

const at = '2026-01-01T00:00:00.000Z'
const plain: ScheduleCreate = {
  name: 'nightly',
  cron: '@daily',
  script: { content: 'true' },
  target: { selector: '@*' },
}
const changed = (more: object) => runsOther(saidBy(plain, at), saidBy({ ...plain, ...more }, at))

test('a schedule with any other option runs something else', (t) => {
  for (const name of Object.keys(runOptions)) t.true(changed({ [name]: 'x' }), name)
  for (const more of [
    { script: { content: 'true', type: 'SH' } },
    { script: undefined, scriptId: 1 },
    { target: { selector: 'web1' } },
    { params: { A: '1' } },
  ])
    t.true(changed(more), JSON.stringify(more))
})

test('name, times and slot options do not change what runs', (t) => {
  const times = { cron: '@hourly', timezone: 'Europe/Berlin', from: at, until: at, jitterSeconds: 3 }
  const slots = { overlap: 'ALLOW', missed: 'SKIP', missedWithinSeconds: 9, enabled: false }
  t.false(changed({ name: 'other', ...times, ...slots }))
})
