import test from 'ava'
import { bodyOf, type Notification } from '../../../src/server/webhooks/sender.ts'

const at = '2026-03-02T09:00:00.000Z'
const ended = (data: object): Notification => ({
  type: 'task.failed',
  at,
  data: {
    taskId: 't1',
    status: 'FAILED',
    script: null,
    createdBy: 'ann',
    hostCount: 3,
    counts: { SUCCESS: 2, FAILED: 1 },
    nodes: 'web1',
    count: 1,
    ...data,
  },
})
const textOf = (told: Notification) => JSON.parse(bodyOf('SLACK', told)).text as string

test('a JSON body is the event itself', (t) => {
  const told = ended({})
  t.deepEqual(JSON.parse(bodyOf('JSON', told)), { type: 'task.failed', timestamp: at, data: told.data })
})

test('a chat gets one line that describes the event', (t) => {
  t.is(textOf(ended({})), 'rsm: task t1 of ann FAILED on web1 (1 of 3 hosts)')
  t.is(textOf(ended({ script: 'deploy' })), 'rsm: task t1 (deploy) of ann FAILED on web1 (1 of 3 hosts)')
  const done = { status: 'SUCCESS', counts: { SUCCESS: 3 }, nodes: '', count: 0 }
  t.is(textOf(ended(done)), 'rsm: task t1 of ann SUCCESS (3 SUCCESS)')
  const hosts = (type: string, nodes: string, count: number) => textOf({ type, at, data: { nodes, count } })
  t.is(hosts('host.offline', 'web1', 1), 'rsm: host web1 is offline')
  t.is(hosts('host.online', 'web[1-300]', 300), 'rsm: 300 hosts web[1-300] are back online')
})

test('each chat gets its own format, and names never become mentions or links', (t) => {
  const told = ended({ script: '<!channel> @everyone [x](http://x) *a* & b' })
  t.is(
    JSON.parse(bodyOf('SLACK', told)).text,
    'rsm: task t1 (&lt;!channel&gt; @everyone [x](http://x) *a* &amp; b) of ann FAILED on web1 (1 of 3 hosts)',
  )
  const discord = JSON.parse(bodyOf('DISCORD', told))
  t.deepEqual(discord.allowed_mentions, { parse: [] })
  t.true(discord.content.includes('\\[x\\]\\(http://x\\) \\*a\\*'))
  const teams = JSON.parse(bodyOf('TEAMS', told))
  t.is(teams.type, 'message')
  const [{ contentType, content }] = teams.attachments
  t.is(contentType, 'application/vnd.microsoft.card.adaptive')
  t.deepEqual(content.body[0].inlines[0].type, 'TextRun')
})

test('the text about a failed schedule contains its hosts, other outcomes and where to look', (t) => {
  const nightly = { scheduleId: 3, schedule: 'nightly' }
  const counts = { SUCCESS: 1, FAILED: 1, SKIPPED: 1 }
  const where = 'rsm: schedule nightly FAILED on web1 (1 of 3 hosts'
  t.is(textOf(ended({ ...nightly, counts })), `${where}: 1 FAILED, 1 SKIPPED): rsm tasks show t1`)
  t.is(
    textOf(ended({ scheduleId: 3, schedule: null })),
    `${where.replace('nightly', '3')}): rsm tasks show t1`,
  )
  const url = 'https://rsm_1.example.org/#/tasks/t1'
  const linked = ended({ ...nightly, url })
  t.is(textOf(linked), `${where}): ${url}`)
  t.is(JSON.parse(bodyOf('DISCORD', linked)).content, `${where.replace(/[(]/, '\\$&')}\\): ${url}`)
  const teams = JSON.parse(bodyOf('TEAMS', linked)).attachments[0].content.body[0].inlines
  t.deepEqual(teams[1], { type: 'TextRun', text: url, selectAction: { type: 'Action.OpenUrl', url } })
})

test('an event written by an older server is sent without hosts', (t) => {
  const { nodes: _, count: __, ...data } = ended({}).data
  const old: Notification = { type: 'task.failed', at, data }
  t.is(textOf(old), 'rsm: task t1 of ann FAILED (2 SUCCESS, 1 FAILED)')
})

test('a text never exceeds the limit of a chat', (t) => {
  const told: Notification = { type: 'host.offline', at, data: { nodes: '_'.repeat(10_000), count: 5000 } }
  t.true(textOf(told).length < 2_000)
  t.true(JSON.parse(bodyOf('DISCORD', told)).content.length <= 2_000)
  t.is(JSON.parse(bodyOf('JSON', told)).data.nodes.length, 10_000)
})
