import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const markup = '<img src=x onerror=alert(1)>'
const content = `#!/bin/bash
# rsm: param VERSION required pattern="[0-9.]+" "version, like 1.2.3"
# rsm: param KEEP default=3 "old versions that stay"
# rsm: param PASSWORD secret "${markup}"
# rsm: param DEBUG
echo "version=$VERSION keep=$KEEP password=\${#PASSWORD} debug=\${DEBUG-unset}"
`

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  await world.server.data('POST', '/api/scripts', { name: 'deploy', type: 'BASH', content })
  await world.server.data('POST', '/api/scripts', { name: 'any', type: 'BASH', content: 'echo "$ANY"' })
})
browserTest.after.always(() => world?.end())

const newest = async () => (await world.server.data('GET', '/api/tasks?size=1')).content[0]

browserTest.serial(
  'A15 declared params of a stored script are a form: required ones are demanded, defaults shown, secrets hidden',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByLabel('Selector').fill('web1')
    await page.getByRole('button', { name: 'A stored script' }).click()
    await page.getByRole('combobox', { name: 'Script' }).selectOption({ label: 'any' })
    await page.getByText('Options').click()
    await page.getByLabel('Parameters').waitFor()
    await page.getByRole('combobox', { name: 'Script' }).selectOption({ label: 'deploy' })
    await page.getByLabel('Parameters').waitFor({ state: 'detached' })
    t.is(await page.getByLabel('KEEP').inputValue(), '3')
    t.is(await page.getByLabel('PASSWORD').getAttribute('type'), 'password')
    await page.getByText(markup, { exact: true }).waitFor()
    for (const size of [
      { width: 1280, height: 800 },
      { width: 390, height: 844 },
    ]) {
      await page.setViewportSize(size)
      await picture(page, `run-params-${size.width}`)
      t.deepEqual(await faultsOfLook(page), [])
    }

    const run = page.getByRole('button', { name: 'Run on 1 host' })
    await run.click()
    t.is(
      await page.evaluate('document.activeElement.name'),
      'param VERSION',
      'the missing field has the focus',
    )
    t.is(await newest(), undefined, 'nothing has started')
    await page.getByLabel('VERSION').fill('one')
    await run.click()
    await page.locator('[data-field="params.VERSION"]').getByRole('alert').getByText('pattern').waitFor()
    t.is(await newest(), undefined, 'the server refuses a value that does not match')
    await page.getByLabel('VERSION').fill('1.2.3')
    await page.getByLabel('PASSWORD').fill('hidden!')
    await run.click()
    await page.locator('.output').getByText('version=1.2.3 keep=3 password=7 debug=unset').waitFor()
    const { taskId } = await newest()
    const { params } = await world.server.data('GET', `/api/tasks/${taskId}`)
    t.deepEqual(params, { VERSION: '1.2.3', KEEP: '3' })
    t.false((await page.content()).includes('hidden!'))
    t.is(await page.locator('img').count(), 0)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('A15 a stored script without declared params accepts any param', async (t) => {
  const { page } = await world.open(t)
  await signIn(page, world.server.url, adminLogin)
  await page.getByLabel('Choose web1').check()
  await page.getByRole('button', { name: 'Run on 1' }).click()
  await page.getByRole('button', { name: 'A stored script' }).click()
  await page.getByRole('combobox', { name: 'Script' }).selectOption({ label: 'any' })
  await page.getByText('Options').click()
  await page.getByLabel('Parameters').fill('ANY=thing goes')
  await page.getByRole('button', { name: 'Run on web1' }).click()
  await page.locator('.output').getByText('thing goes').waitFor()
  await until('the end of the task', async () => (await newest()).status === 'SUCCESS')
  t.pass()
})
