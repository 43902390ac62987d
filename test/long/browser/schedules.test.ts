import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  const content = `#!/bin/bash\n# rsm: param BUCKET required\n# rsm: param TOKEN secret\necho "${'to '.repeat(60)}$BUCKET"\n`
  await world.server.data('POST', '/api/scripts', { name: 'backup', type: 'BASH', content })
})
browserTest.after.always(() => world?.end())

const plain = {
  everySeconds: 86_400,
  script: { content: 'echo "on" schedule' },
  target: { selector: 'web1' },
}
const make = (more: object) => world.server.data('POST', '/api/schedules', { ...plain, ...more })
const of = (id: number) => world.server.data('GET', `/api/schedules/${id}`)
const count = async () => (await world.server.data('GET', '/api/schedules')).totalElements
const faultAt = (page: Page, field: string) => page.locator(`[data-field="${field}"]`).getByRole('alert')

async function open(t: ExecutionContext, address: string, login = adminLogin) {
  const opened = await world.open(t, { timezoneId: 'Europe/Berlin' })
  await signIn(opened.page, world.server.url, login)
  await opened.page.goto(`${world.server.url}/#/${address}`)
  return opened
}

browserTest.serial(
  "a schedule's form shows the next times in its zone while they are typed, and faults at their fields",
  async (t) => {
    const { page, complaints } = await open(t, 'schedules')
    await page.getByText('No schedules yet').waitFor()
    await page.getByRole('button', { name: 'New schedule' }).click()
    const next = page.getByRole('status', { name: 'Next times' })
    const slots = () => next.locator('tbody td:first-child').allTextContents()
    await page.getByLabel('Name').fill('nightly')
    t.is(await page.getByLabel('Time zone').inputValue(), 'Europe/Berlin')
    await page.getByLabel('Time zone').fill('America/New_York')
    await page.getByLabel('Cron').fill('30 3 * * 1-5')
    await until('five times of New York', async () => (await slots()).length === 5)
    for (const slot of await slots()) t.regex(slot, /^\d{4}-\d\d-\d\d 03:30:00-0[45]:00$/)
    t.regex((await next.locator('tbody td').nth(1).textContent()) ?? '', /0[89]:30:00\+0[12]:00$/)

    await page.getByRole('button', { name: 'By interval' }).click()
    await page.getByLabel('Every').fill('often')
    await next.getByText('use 90s, 5m or 2h').waitFor()
    await page.getByRole('button', { name: 'By calendar' }).click()
    await page.getByLabel('Cron').fill('0 3 30 2 *')
    await next.getByText('never runs').waitFor()

    await page.getByLabel('On', { exact: true }).fill('web[1-')
    await page.getByLabel('Command').fill('echo "for" once')
    await page.getByText('Bounds, overlap and missed slots').click()
    await page.getByLabel('Jitter').fill('1m')
    await page.getByText('Bounds, overlap and missed slots').click()
    const create = page.getByRole('button', { name: 'Create the schedule' })
    await create.click()
    await faultAt(page, 'cron').getByText('never runs').waitFor()
    await faultAt(page, 'target').getByText('a bracket is not closed').waitFor()
    t.is(await page.evaluate('document.activeElement.name'), 'cron', 'the first fault has the focus')
    await page.getByLabel('Time zone').fill('Europe/Berlim')
    t.is(
      await page.locator('[data-faulty]').count(),
      0,
      'the message disappears while the input is corrected',
    )
    await page.getByLabel('Cron').fill('* * * * *')
    await create.click()
    await faultAt(page, 'timezone').getByText('did you mean Europe/Berlin').waitFor()
    await page.getByLabel('Time zone').fill('Europe/Berlin')
    await page.getByLabel('On', { exact: true }).fill('web1')
    await create.click()
    // Its field is in a folded section.
    await faultAt(page, 'jitterSeconds').getByText('less than the interval').waitFor()
    t.is(await page.evaluate('document.activeElement.name'), 'jitterSeconds')
    t.is(await count(), 0, 'no schedule was created')

    await page.getByLabel('Cron').fill('30 3 * * 1-5')
    const typed = await slots()
    await create.click()
    await page.getByRole('heading', { name: 'nightly' }).waitFor()
    t.deepEqual(await page.locator('.slot-times td:first-child').allTextContents(), typed)
    const id = Number(/\d+$/.exec(page.url())?.[0])
    t.like(await of(id), {
      name: 'nightly',
      cron: '30 3 * * 1-5',
      timezone: 'Europe/Berlin',
      jitterSeconds: 60,
      target: { selector: 'web1' },
      script: { content: 'echo "for" once' },
      enabled: true,
      owner: 'admin',
    })

    await page.goto(`${world.server.url}/#/schedules/new`)
    await page.getByLabel('Name').fill('Nightly')
    await page.getByLabel('Cron').fill('@daily')
    await page.getByLabel('On', { exact: true }).fill('web1')
    await page.getByLabel('Command').fill('true')
    await create.click()
    await page
      .getByRole('alert')
      .getByText(/exists|taken|already/)
      .waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('an edit sends only changed fields, and keeps secret params without input', async (t) => {
  const scriptId = (await world.server.data('GET', '/api/scripts?name=backup')).content[0].id
  const { id } = await make({
    name: 'backups',
    script: undefined,
    scriptId,
    params: { BUCKET: 'one' },
    secretParams: { TOKEN: 'hidden' },
    from: '2026-01-01T00:00:00.250Z',
    verify: { script: { content: 'true' }, retries: 2 },
    batchSize: '25%',
    strategy: 'ROLLING',
  })
  const before = await of(id)
  const { page, complaints } = await open(t, `schedules/${id}`)
  const patches: unknown[] = []
  page.on('request', (request) => {
    if (request.method() === 'PATCH') patches.push(request.postDataJSON())
  })
  const edit = page.getByRole('button', { name: 'Edit' })
  const save = page.getByRole('button', { name: 'Save' })
  await edit.click()
  t.is(await page.getByLabel('BUCKET').inputValue(), 'one')
  t.is(await page.getByLabel('Every').inputValue(), '1d')
  t.is(await page.getByLabel('Retries').inputValue(), '2')
  await page.getByText('Text, version 1').click()
  await page.setViewportSize({ width: 400, height: 860 })
  await picture(page, 'schedule-edit-phone')
  t.deepEqual(await faultsOfLook(page), [], 'a long line does not widen the form')
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByLabel('Name').fill('all backups')
  await page.getByLabel('BUCKET').fill('two')
  await save.click()
  await page.getByRole('heading', { name: 'all backups', exact: true }).waitFor()
  t.deepEqual(patches, [{ name: 'all backups', params: { BUCKET: 'two' } }])
  const { updatedAt: _, ...after } = await of(id)
  t.like(after, { ...before, updatedAt: after.updatedAt, name: 'all backups', params: { BUCKET: 'two' } })

  await edit.click()
  await page.getByRole('button', { name: 'Once' }).click()
  await page.getByLabel('At', { exact: true }).fill('2031-07-01T03:30')
  await page.getByRole('button', { name: 'A command' }).first().click()
  await page.getByLabel('Command', { exact: true }).fill('echo "now" typed')
  await page.getByRole('group', { name: 'Verify with' }).getByRole('button', { name: 'Nothing' }).click()
  await save.click()
  await page.getByRole('heading', { name: 'all backups', exact: true }).waitFor()
  t.like(await of(id), {
    at: '2031-07-01T01:30:00.000Z',
    everySeconds: null,
    scriptId: null,
    script: { content: 'echo "now" typed' },
    params: {},
    batchSize: '25%',
  })
  t.is((await of(id)).verify, undefined)
  t.deepEqual(complaints, [])
})

browserTest.serial(
  'a schedule can be run now after its plan, paused, resumed and deleted; its history updates automatically',
  async (t) => {
    const { server } = world
    const { id } = await make({ name: 'probe' })
    const { page, complaints } = await open(t, 'schedules')
    await page.getByRole('link', { name: 'probe' }).click()
    await page.getByText('It has not run yet').waitFor()
    await page.getByRole('button', { name: 'Run now' }).click()
    const dialog = page.getByRole('dialog', { name: 'Run ‘probe’ now?' })
    await dialog.getByText('web1').waitFor()
    await dialog.getByRole('button', { name: 'Run it now' }).click()
    await page.locator('.output').getByText('on schedule').waitFor()
    await page.goBack()
    await page.getByText('run now, by admin').waitFor()
    await page
      .getByRole('row', { name: /1 success/ })
      .getByRole('link')
      .click()
    await page.locator('.output').getByText('on schedule').waitFor()
    await page.goBack()

    await server.data('PATCH', `/api/schedules/${id}`, { everySeconds: 1, script: { content: 'sleep 4' } })
    await page
      .getByRole('row', { name: /skipped ?: overlap/ })
      .first()
      .waitFor()
    await server.stop()
    const stopped = Date.now()
    await until('slots pass without a server', () => Date.now() > stopped + 3500)
    await server.restart()
    await page.getByRole('row', { name: /the last of \d slots since .* skipped ?: missed/ }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('.heading .badge', { hasText: 'paused' }).waitFor()
    t.false((await of(id)).enabled)
    for (const [kind, width] of [
      ['desk', 1280],
      ['phone', 390],
    ] as const) {
      await page.setViewportSize({ width, height: 800 })
      await picture(page, `schedule-${kind}`)
      t.deepEqual(await faultsOfLook(page), [], kind)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.locator('.heading .badge').waitFor({ state: 'detached' })
    t.true((await of(id)).enabled)

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog', { name: 'Delete the schedule ‘probe’?' }).waitFor()
    await page.keyboard.press('Escape')
    t.is((await of(id)).name, 'probe')
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete it' }).click()
    await page.getByRole('heading', { name: 'Schedules' }).waitFor()
    t.is((await server.api('GET', `/api/schedules/${id}`)).status, 404)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'a suspended schedule shows the reason, and resuming it changes its owner; others can only view it',
  async (t) => {
    const { server } = world
    const [oskar, vera, olga] = ['oskar', 'vera', 'olga'].map((username) => ({
      username,
      password: 'long enough',
    }))
    if (!oskar || !vera || !olga) throw new Error('unreachable')
    const { id: userId } = await server.data('POST', '/api/users', { ...oskar, role: 'OPERATOR' })
    await server.data('POST', '/api/users', { ...olga, role: 'OPERATOR' })
    await server.data('POST', '/api/users', { ...vera, role: 'VIEWER' })
    const { body } = await server.api('POST', '/api/auth/login', oskar)
    const made = await server.api(
      'POST',
      '/api/schedules',
      { ...plain, everySeconds: 2, name: 'report', secretParams: { TOKEN: 'hidden' } },
      { authorization: `Bearer ${body.data.token}` },
    )
    const { id } = made.body.data
    const { page, complaints } = await open(t, 'schedules')
    await page.getByRole('row', { name: /report/ }).waitFor()
    await server.data('PATCH', `/api/users/${userId}`, { enabled: false })
    await page.getByRole('row', { name: /report.*suspended.*its owner oskar is disabled/ }).waitFor()
    await picture(page, 'schedules')

    const readsOnly = async (login: typeof adminLogin, offered: string[]) => {
      const other = (await open(t, `schedules/${id}`, login)).page
      await other.getByText('Suspended: its owner oskar is disabled').waitFor()
      t.deepEqual(await other.locator('.heading button').allTextContents(), offered)
    }
    await readsOnly(vera, [])
    await readsOnly(olga, ['Run now'])

    await page.getByRole('link', { name: 'report' }).click()
    await page.getByRole('button', { name: 'Resume' }).click()
    const dialog = page.getByRole('dialog', { name: 'Resume ‘report’?' })
    await dialog.getByText('You become its owner').waitFor()
    await dialog.getByText('enter TOKEN again').waitFor()
    await dialog.getByRole('button', { name: 'Resume it' }).click()
    await page.locator('.heading .badge').waitFor({ state: 'detached' })
    t.like(await of(id), { owner: 'admin', suspended: null, secretParams: [] })
    t.deepEqual(complaints, [])
  },
)
