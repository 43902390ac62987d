import { simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  const names = Array.from({ length: 24 }, (_, at) => `sim${at + 1}`)
  await simulateFleet(world.server, names, (name, { script }) => ({
    goesOn: script.includes('sleep'),
    exitCode: script.includes('false') && name === 'sim2' ? 1 : 0,
  }))
})
browserTest.after.always(() => world?.end())

const newest = async () => (await world.server.data('GET', '/api/tasks?size=1')).content[0]

browserTest.serial(
  'A15 Run shows the hosts of a selector while it is typed, and asks before running on many or all',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByRole('link', { name: 'Run', exact: true }).click()
    const selector = page.getByLabel('Selector')
    const named = page.locator('#named')

    await selector.fill('sim[1-3],web1')
    await named.getByText('4 hosts').waitFor()
    await named.getByText('sim[1-3],web1', { exact: true }).waitFor()
    await selector.fill('sim1,smi[1-30]')
    await named.getByText('no such host: smi[1-').waitFor()
    t.is(
      (((await named.textContent()) ?? '').match(/no such host/g) ?? []).length,
      1,
      'one message, not thirty',
    )
    await page.getByLabel('Command').fill('true')
    await page.keyboard.press('Control+Enter')
    const alert = page.getByRole('alert')
    await alert.getByText('no such host').waitFor()
    t.true(((await alert.textContent()) ?? '').length <= 401)
    await selector.fill('sim[1-3]')
    t.is(await alert.count(), 0, 'the message disappears while the input is corrected')

    await selector.fill('@*')
    await named.getByText('25 hosts').waitFor()
    await page.getByRole('button', { name: 'Run on 25 hosts' }).click()
    const dialog = page.getByRole('dialog', { name: 'Run ‘true’ on all 25 hosts?' })
    await dialog.waitFor()
    await dialog.getByText('sim[1-24],web1').waitFor()
    t.is(await page.evaluate('document.activeElement.textContent'), 'Don’t run')
    await picture(page, 'run-asks')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.is(await newest(), undefined, 'nothing has started')

    await page.getByRole('button', { name: 'Run on 25 hosts' }).click()
    await dialog.waitFor()
    await server.data('POST', '/api/hosts', { hostname: 'late', ip: '10.0.0.9', tags: {} })
    await dialog.getByRole('button', { name: 'Run on all 25 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.is((await newest()).hostCount, 25, 'the task runs on the confirmed hosts')

    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await selector.fill('sim[1-21]')
    await page.getByLabel('Command').fill('true')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('dialog', { name: 'Run ‘true’ on 21 hosts?' }).waitFor()
    await page.keyboard.press('Escape')
    await selector.fill('sim[1-3]')
    await page.getByRole('button', { name: 'Run on 3 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.is((await newest()).hostCount, 3)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'A15 Cancel and Retry ask with their hosts, and Retry asks for secrets, which are not stored',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    const { taskId } = await server.data('POST', '/api/tasks', {
      script: { content: 'sleep 600' },
      target: { selector: 'sim[1-4]' },
      concurrency: 3,
    })
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.locator('.results').getByText('running').nth(2).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    const dialog = page.getByRole('dialog', { name: 'Cancel ‘sleep 600’ on 4 hosts?' })
    await dialog.getByText('It is stopped on 3 hosts; 1 host will not start.').waitFor()
    await dialog.getByText('sim[1-4]').waitFor()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    t.is((await server.data('GET', `/api/tasks/${taskId}`)).status, 'RUNNING')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await dialog.getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('.heading .badge', { hasText: 'cancelled' }).waitFor()

    const failed = await server.data('POST', '/api/tasks', {
      script: { content: 'false' },
      secretParams: { PASSWORD: 'hidden' },
      target: { selector: 'sim[1-3]' },
    })
    await until('the end', async () => (await newest()).status === 'FAILED')
    await page.goto(`${server.url}/#/tasks/${failed.taskId}`)
    await page.getByRole('button', { name: 'Retry failed hosts' }).click()
    const again = page.getByRole('dialog', { name: 'Run ‘false’ again on 1 host?' })
    await again.getByText('sim2').waitFor()
    t.is((await newest()).taskId, failed.taskId, 'nothing has started')
    await again.getByLabel('PASSWORD').fill('hidden')
    t.is(await again.getByLabel('PASSWORD').getAttribute('type'), 'password')
    await picture(page, 'retry-asks')
    await again.getByRole('button', { name: 'Run on 1 host' }).click()
    await until('the second try', async () => (await newest()).retryOf === failed.taskId)
    t.deepEqual(complaints, [])
  },
)
