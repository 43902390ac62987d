import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { type SimulatedHost, simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { upload } from '../../helpers/clients/files.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { type Receiver, startReceiver } from '../../helpers/servers/webhook-receiver.ts'
import { until } from '../../helpers/until.ts'

const numbered = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${name}${at + 1}.eu-central-1.example.com`)
/** Together with web1, which has a real agent, 300 hosts. */
const names = [...numbered('shop', 149), ...numbered('db-replica', 100), ...numbered('cache', 50)]
const numberOf = (name: string) => Number(/\d+/.exec(name)?.[0])
const isOdd = (name: string) => numberOf(name) % 40 === 7

let world: ConsoleWorld
let receiver: Receiver
let fleet: SimulatedHost[]
/** The address of each page. */
const pages: Record<string, string> = {}
const endings: (() => Promise<void>)[] = []

/** A deploy that succeeds on most hosts; the rollback fails on some. */
async function makeGatedTask(): Promise<void> {
  const { taskId } = await world.server.data('POST', '/api/tasks', {
    script: { name: 'deploy-the-shop', content: 'deploy-the-shop 4.2.0' },
    verify: { script: { content: 'curl -fsS localhost:8080/health' }, retries: 3 },
    rollback: { script: { content: 'ln -sfn previous /srv/shop/current && systemctl restart shop' } },
    target: { selector: 'shop*,db-replica*,cache*' },
  })
  await finished(world.server, taskId)
  pages['task-gates'] = `tasks/${taskId}`
}

async function makeFileTasks(): Promise<void> {
  const { server } = world
  const { fileId } = await upload(server, 'listen = 8080\nworkers = 16\n'.repeat(80))
  const copy = {
    fileId,
    path: '/etc/shop/%h/app.conf',
    kind: 'FILE',
    mode: '0640',
    owner: 'shop',
    backup: true,
  }
  const target = { selector: 'shop*,db-replica*,cache*' }
  const copied = await server.data('POST', '/api/tasks', { copy, target, limitRate: 2_000_000 })
  await finished(server, copied.taskId)
  pages['task-copy'] = `tasks/${copied.taskId}`
  const fetch = { path: '/var/log/shop/access.log', kind: 'FILE' }
  const fetched = await server.data('POST', '/api/tasks', { fetch, target })
  await finished(server, fetched.taskId)
  pages['task-fetch'] = `tasks/${fetched.taskId}`
}

/** Schedules of all kinds: running, waiting, paused, suspended, and without a matching host. */
async function makeSchedules(): Promise<void> {
  const { server } = world
  const all = { selector: 'shop*,db-replica*' }
  const olga = { username: 'olga', password: 'long enough' }
  const { id: userId } = await server.data('POST', '/api/users', { ...olga, role: 'OPERATOR' })
  const login = await server.data('POST', '/api/auth/login', olga)
  const make = (body: object, token = server.token) =>
    server
      .api('POST', '/api/schedules', { target: all, ...body }, { authorization: `Bearer ${token}` })
      .then(({ body: { data } }) => data)
  const { fileId } = await upload(server, 'Welcome.\n')
  await make({
    name: 'nightly-backup-of-all-databases-and-of-what-the-shop-has-uploaded',
    cron: '30 3 * * 1-5',
    timezone: 'America/Argentina/ComodRivadavia',
    script: {
      content: 'pg_dumpall --clean | zstd -T0 > /var/backups/all.sql.zst && restic backup /var/backups',
    },
  })
  const motd = await make({
    name: 'motd',
    cron: '0 5 * * *',
    timezone: 'Europe/Berlin',
    copy: { fileId, path: '/etc/motd', kind: 'FILE', mode: '0644' },
  })
  await make({
    name: 'reboot',
    at: '2031-01-01T03:00:00Z',
    script: { content: 'systemctl reboot' },
    enabled: false,
  })
  await make({ name: 'sweep', everySeconds: 1, script: { content: 'find /var/tmp -delete' } }, login.token)
  const ghost = { selector: 'decommissioned*' }
  await make({ name: 'ghost', everySeconds: 86_400, script: { content: 'true' }, target: ghost })
  const probe = await make({ name: 'probe', everySeconds: 1, script: { content: 'slow probe' } })
  await server.data('PATCH', `/api/users/${userId}`, { enabled: false })
  const of = (id: number) => server.data('GET', `/api/schedules/${id}/history`)
  const slots = async () => (await of(probe.id)).content as { outcome: string }[]
  await until('a skipped slot', async () => (await slots()).some(({ outcome }) => outcome === 'SKIPPED'))
  await server.data('PATCH', `/api/schedules/${probe.id}`, { cron: '*/5 * * * *', timezone: 'Asia/Kolkata' })
  const { lastTask } = await server.data('GET', `/api/schedules/${probe.id}`)
  for (const host of fleet) host.end(lastTask.taskId, isOdd(host.name) ? 1 : 0)
  await finished(server, lastTask.taskId)
  pages.schedules = 'schedules'
  pages.motd = `schedules/${motd.id}`
  pages.schedule = `schedules/${probe.id}`
}

async function makeWebhooks(): Promise<void> {
  const { server, hostId } = world
  const make = (body: object) => server.data('POST', '/api/webhooks', body)
  const events = ['task.failed', 'task.ended', 'schedule.suspended', 'host.offline']
  const { id } = await make({ name: 'on-call', url: receiver.url, events, selector: 'shop*,web1' })
  await make({
    name: 'what-the-team-of-the-shop-reads-in-its-own-channel',
    url: 'https://hooks.chat.example.com/services/T024BE7LD/B024BE7LD/a-token-that-is-as-long-as-they-are',
    events: ['task.failed'],
    format: 'SLACK',
    enabled: false,
  })
  const run = (content: string, target: object) =>
    server.data('POST', '/api/tasks', { script: { name: content, content }, target, async: false })
  await run('true', { hostIds: [hostId] })
  await run('restart-the-payment-service-and-check-it', { selector: 'shop*' })
  receiver.answers(503)
  await run('false', { hostIds: [hostId] })
  await until('a waiting delivery', async () => {
    const { content } = await server.data('GET', `/api/webhooks/${id}/deliveries?status=WAITING`)
    return content.some(({ tries }: { tries: number }) => tries > 0)
  })
  pages.webhooks = 'webhooks'
  pages.webhook = `webhooks/${id}`
}

browserTest.serial.before(async () => {
  world = await startConsoleWorld('web1', { webhooks: { insecure: true, allow: ['127.0.0.1'] } })
  receiver = await startReceiver({ teardown: (end) => endings.push(end) })
  fleet = await simulateFleet(
    world.server,
    names,
    (name, { script, verify }) => {
      if (script.startsWith('slow')) return { goesOn: true }
      if (verify === undefined) return { exitCode: isOdd(name) ? 1 : 0 }
      const asked = ['stdout', '{"status":"up"}\n', 'VERIFY'] as const
      if (!isOdd(name))
        return {
          output: [['stdout', 'shop 4.2.0 is in its place\n'], asked],
          end: { verify: { status: 'SUCCESS', exitCode: 0, attempts: 1 } },
        }
      const isStuck = name.startsWith('db')
      return {
        exitCode: 22,
        output: [
          ['stdout', 'shop 4.2.0 is in its place\n'],
          ['stderr', 'curl: (22) The requested URL returned error: 503\n', 'VERIFY'],
          ['stderr', isStuck ? 'Job for shop.service failed.\n' : '', 'ROLLBACK'],
        ],
        end: {
          error: 'verification failed: exit code 22 (the last of 4 attempts)',
          verify: { status: 'FAILED', exitCode: 22, attempts: 4 },
          rollback: isStuck ? { status: 'FAILED', exitCode: 1 } : { status: 'SUCCESS', exitCode: 0 },
        },
      }
    },
    (name) =>
      isOdd(name)
        ? { exitCode: 1, error: 'ENOSPC: no space left on device' }
        : { changed: numberOf(name) % 3 === 0 },
  )
  await makeGatedTask()
  await makeFileTasks()
  await makeSchedules()
  await makeWebhooks()
})
browserTest.after.always(async () => {
  await world?.end()
  for (const end of endings) await end()
})

const sizes = { desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } }
const themes = ['light', 'dark'] as const
type Theme = (typeof themes)[number]

/** Checks the layout of a page and takes pictures of it, at the sizes of a desk and a phone. */
async function looksGood(t: ExecutionContext, page: Page, name: string, theme: Theme): Promise<void> {
  for (const [kind, size] of Object.entries(sizes)) {
    await page.setViewportSize(size)
    await picture(page, `work-${name}-${kind}-${theme}`)
    t.deepEqual(await faultsOfLook(page), [], `${name} on a ${kind}, ${theme}`)
  }
  await page.setViewportSize(sizes.desk)
}

async function openIn(t: ExecutionContext, theme: Theme) {
  const opened = await world.open(t, { colorScheme: theme, timezoneId: 'Europe/Berlin' })
  await signIn(opened.page, world.server.url, adminLogin)
  return { ...opened, go: (address: string) => opened.page.goto(`${world.server.url}/#/${address}`) }
}

for (const theme of themes) {
  browserTest.serial(`A15 Run with gates fits a desk and a phone, ${theme}, with 300 hosts`, async (t) => {
    const { page, complaints, go } = await openIn(t, theme)
    await go('run')
    await page.getByLabel('Selector').fill('@*')
    await page.locator('#named').getByText('300 hosts').waitFor()
    await page.getByLabel('Command').fill('deploy-the-shop 4.2.0')
    await page.getByText('Verify and roll back').click()
    const gate = (name: string) => page.getByRole('group', { name, exact: true })
    await gate('Verify').getByRole('button', { name: 'A command' }).click()
    await page.getByLabel('Verify command').fill('curl -fsS localhost:8080/health')
    await gate('Roll back').getByRole('button', { name: 'A command' }).click()
    await page.getByLabel('Rollback command').fill('ln -sfn previous /srv/shop/current')
    await looksGood(t, page, 'run-gates', theme)
    await page.getByRole('button', { name: 'Show the plan' }).click()
    await page.getByRole('dialog').waitFor()
    await looksGood(t, page, 'run-gates-plan', theme)
    await page.keyboard.press('Escape')
    await page.getByText('Verify and roll back').click()
    await page.getByText('Options').click()
    await page.getByLabel('Secret params').fill('TOKEN, DATABASE_PASSWORD')
    await looksGood(t, page, 'run-options', theme)
    await page.getByLabel('Bytes per second').scrollIntoViewIfNeeded()
    await looksGood(t, page, 'run-options-end', theme)
    await page.getByText('Options').click()
    for (const kind of ['Copy', 'Fetch']) {
      await page.getByRole('button', { name: `${kind} a file` }).click()
      await page.getByLabel('Path on the hosts').fill('/srv/shop/%h/releases/4.2.0/')
      await looksGood(t, page, `run-${kind.toLowerCase()}`, theme)
    }
    t.deepEqual(complaints, [])
  })

  browserTest.serial(
    `A15 tasks with gates and files fit a desk and a phone, ${theme}, with 300 hosts`,
    async (t) => {
      const { page, complaints, go } = await openIn(t, theme)
      await go(pages['task-gates'] ?? '')
      await page.locator('.output').getByText('is in its place').first().waitFor()
      await looksGood(t, page, 'task-gates', theme)
      await page.getByRole('button', { name: /^db-replica7\./ }).click()
      await page.getByRole('group', { name: /^Phases of db-replica7\./ }).waitFor()
      await looksGood(t, page, 'task-gates-host', theme)
      for (const name of ['task-copy', 'task-fetch']) {
        await go(pages[name] ?? '')
        await page.getByLabel('File', { exact: true }).waitFor()
        await page.getByText('ENOSPC').first().waitFor()
        if (name === 'task-fetch') await page.getByRole('button', { name: 'fetched 290' }).click()
        await looksGood(t, page, name, theme)
      }
      t.deepEqual(complaints, [])
    },
  )

  browserTest.serial(
    `A15 schedules and webhooks fit a desk and a phone, ${theme}, with 300 hosts`,
    async (t) => {
      const { page, complaints, go } = await openIn(t, theme)
      for (const [name, shown] of [
        ['schedules', 'suspended'],
        ['schedule', 'overlap'],
        ['webhooks', 'SLACK'],
        ['webhook', 'answered 503'],
      ] as const) {
        await go(pages[name] ?? '')
        await page.locator('.rows').getByText(shown).first().waitFor()
        await looksGood(t, page, name, theme)
      }
      await go(pages.motd ?? '')
      await page.locator('.facts').getByText('SHA-256').waitFor()
      await looksGood(t, page, 'schedule-copy', theme)
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByLabel('Path on the hosts').waitFor()
      await looksGood(t, page, 'schedule-copy-edit', theme)
      await page.getByLabel('Path on the hosts').scrollIntoViewIfNeeded()
      await looksGood(t, page, 'schedule-copy-edit-end', theme)
      t.deepEqual(complaints, [])
    },
  )
}
