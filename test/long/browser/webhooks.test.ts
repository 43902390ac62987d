import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { isSigned, type Receiver, startReceiver } from '../../helpers/servers/webhook-receiver.ts'

let world: ConsoleWorld
let receiver: Receiver
browserTest.serial.before(async () => {
  world = await startConsoleWorld('web1', {
    webhooks: { insecure: true, allow: ['127.0.0.1'] },
    webhookHostGrace: { offline: 500, online: 500 },
    heartbeatInterval: 1,
  })
  receiver = await startReceiver({ teardown: () => undefined })
})
browserTest.after.always(async () => {
  await world?.end()
  await receiver?.close()
})

browserTest.serial(
  'a new webhook shows faults at their fields and its secret once, and a test is signed with the secret',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByText('No webhooks yet').waitFor()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const faultAt = (field: string) => page.locator(`[data-field="${field}"]`).getByRole('alert')
    const create = page.getByRole('button', { name: 'Create the webhook' })
    await page.getByLabel('Name').fill('on call')
    await page.getByLabel('URL').fill('http://169.254.169.254/latest')
    await create.click()
    await faultAt('events').getByText('choose at least one').waitFor()
    await page.getByLabel('task.failed').check()
    await page.getByLabel('Selector').fill('web[1-')
    await page.getByLabel('Secret').fill('a password')
    await create.click()
    await faultAt('url').getByText(/./).waitFor()
    await faultAt('selector').getByText('a bracket is not closed').waitFor()
    await faultAt('secret').getByText('must be whsec_').waitFor()
    t.is(await page.evaluate('document.activeElement.name'), 'url')
    t.is((await server.data('GET', '/api/webhooks')).totalElements, 0)
    await picture(page, 'webhook-faults')

    await page.getByLabel('URL').fill(receiver.url)
    await page.getByLabel('Selector').fill('web1')
    await page.getByLabel('Secret').fill('')
    await create.click()
    const dialog = page.getByRole('dialog', { name: 'The secret of ‘on call’' })
    const secret = await dialog.getByLabel('Secret').inputValue()
    t.regex(secret, /^whsec_/)
    await page.keyboard.press('Escape')
    t.true(await dialog.isVisible(), 'only its button closes it')
    await dialog.getByRole('button', { name: 'I have saved it' }).click()
    await page.getByRole('heading', { name: 'on call' }).waitFor()
    await page.getByText('No deliveries yet').waitFor()
    t.false((await page.content()).includes(secret))

    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('Delivered: the receiver answered 204.').waitFor()
    const [tested] = await receiver.first(1)
    t.true(tested !== undefined && isSigned(secret, tested))
    receiver.answers(500)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('alert').getByText('Not delivered: the receiver answered 500').waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  "a webhook's page shows deliveries live and by status; it can be edited, disabled, given a new secret and deleted",
  async (t) => {
    const { server, hostId } = world
    const hook = { name: 'pager', url: receiver.url, events: ['task.failed', 'task.ended'], selector: 'web1' }
    const { id } = await server.data('POST', '/api/webhooks', hook)
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByRole('link', { name: 'pager' }).click()
    await page.getByText('No deliveries yet').waitFor()
    receiver.answers(204)
    const run = (name: string, content: string) =>
      server.data('POST', '/api/tasks', {
        script: { name, content },
        target: { hostIds: [hostId] },
        async: false,
      })
    const { taskId } = await run('fine', 'true')
    const delivered = page.getByRole('row', { name: /task\.ended.*fine.*1 success.*delivered.*answered 204/ })
    await delivered.waitFor()
    receiver.answers(503)
    await run('bad', 'false')
    const waiting = page.getByRole('row', {
      name: /task\.\w+.*bad.*1 failed.*waiting.*again at.*answered 503/,
    })
    await waiting.waitFor()
    await page.getByRole('button', { name: 'waiting 2' }).click()
    await delivered.waitFor({ state: 'detached' })
    await waiting.waitFor()
    await page.getByRole('button', { name: 'All 3' }).click()
    for (const [kind, width] of [
      ['desk', 1280],
      ['phone', 390],
    ] as const) {
      await page.setViewportSize({ width, height: 800 })
      await picture(page, `webhook-${kind}`)
      t.deepEqual(await faultsOfLook(page), [], kind)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await delivered.getByRole('link').click()
    await page.getByRole('heading', { name: 'fine' }).waitFor()
    t.true(page.url().endsWith(taskId))
    await page.goBack()

    await page.getByRole('button', { name: 'Edit' }).click()
    t.true(await page.getByLabel('task.ended').isChecked())
    await page.getByLabel('task.ended').uncheck()
    await page.getByLabel('Selector').fill('')
    await page.getByLabel('Format').selectOption('SLACK')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('A text for Slack').waitFor()
    const of = () => server.data('GET', `/api/webhooks/${id}`)
    t.like(await of(), {
      name: 'pager',
      events: ['task.failed'],
      selector: null,
      format: 'SLACK',
      enabled: true,
    })
    await page.getByRole('button', { name: 'Disable' }).click()
    await page.locator('.heading .badge', { hasText: 'disabled' }).waitFor()
    t.false((await of()).enabled)
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.locator('.heading .badge', { hasText: 'enabled' }).waitFor()
    await page.getByRole('button', { name: 'New secret' }).click()
    await page.getByRole('button', { name: 'Generate' }).click()
    const shown = page.getByRole('dialog', { name: 'The secret of ‘pager’' })
    t.regex(await shown.getByLabel('Secret').inputValue(), /^whsec_/)
    await shown.getByRole('button', { name: 'I have saved it' }).click()

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete it' }).click()
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    t.is((await server.api('GET', `/api/webhooks/${id}`)).status, 404)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'a delivery shows its subject: a node set of hosts, the host of a revoked agent, or a schedule',
  async (t) => {
    const { server } = world
    receiver.answers(204)
    const silent = await Promise.all(['sil1', 'sil2', 'sil3'].map((name) => server.enroll(name)))
    for (const { agentId, token } of silent) {
      const beat = { agentId, status: 'HEALTHY', uptime: 1 }
      await server.api('POST', '/api/agent/heartbeat', beat, { authorization: `Bearer ${token}` })
    }
    const events = ['host.offline', 'agent.revoked', 'schedule.skipped']
    const hook = await server.data('POST', '/api/webhooks', { name: 'all', url: receiver.url, events })
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.goto(`${server.url}/#/webhooks/${hook.id}`)
    await page.getByRole('row', { name: /host\.offline.*sil\[1-3\].*3 hosts.*delivered/ }).waitFor()
    await server.data('DELETE', `/api/hosts/${silent[0]?.hostId}/agent`)
    await page.getByRole('row', { name: /agent\.revoked.*sil1.*delivered/ }).waitFor()
    const ghost = await server.data('POST', '/api/schedules', {
      name: 'ghost',
      everySeconds: 1,
      script: { content: 'true' },
      target: { selector: 'nosuch*' },
    })
    const skipped = page.getByRole('row', { name: /schedule\.skipped.*ghost.*failed/ }).first()
    await skipped.getByRole('link', { name: 'ghost' }).click()
    await page.getByRole('heading', { name: 'ghost' }).waitFor()
    t.true(page.url().endsWith(`/schedules/${ghost.id}`))
    await page
      .getByRole('row', { name: /failed/ })
      .first()
      .waitFor()
    await server.data('DELETE', `/api/schedules/${ghost.id}`)
    await page.getByRole('alert').getByText(/./).waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'an OPERATOR has no link to webhooks, and the page says that it requires ADMIN',
  async (t) => {
    const { server } = world
    const olga = { username: 'olga', password: 'long enough' }
    await server.data('POST', '/api/users', { ...olga, role: 'OPERATOR' })
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, olga)
    t.is(await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).count(), 0)
    await page.goto(`${server.url}/#/webhooks`)
    await page.getByText('You are olga, OPERATOR; this requires ADMIN').waitFor()
    t.deepEqual(complaints, [])
  },
)
