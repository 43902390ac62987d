import test from 'ava'
import type { Browser } from 'playwright-core'
import { browserTest, launchBrowser, openPage, picture, signIn } from '../helpers/browser.ts'
import { realAgent } from '../helpers/real-agent.ts'
import { adminLogin, startTestServer } from '../helpers/server.ts'

let browser: Browser
browserTest.before(async () => {
  browser = await launchBrowser()
})
test.after.always(() => browser?.close())

browserTest('looks', async (t) => {
  const server = await startTestServer(t)
  await realAgent(t, server, { hostname: 'web1' })
  await realAgent(t, server, { hostname: 'web2' })
  await server.data('POST', '/api/hosts', {
    hostname: 'db1',
    ip: '10.0.0.7',
    tags: { env: 'prod', note: '<img src=x onerror=alert(1)>' },
  })
  await server.data('POST', '/api/scripts', {
    name: '<img src=x onerror=alert(1)>',
    type: 'BASH',
    content: 'echo $X',
  })
  const { page, complaints } = await openPage(t, browser)
  await page.goto(`${server.url}/`)
  await page.getByLabel('User').waitFor()
  await picture(page, 'sign-in')
  await signIn(page, server.url, adminLogin)
  await page.getByText('Live').waitFor()
  await page.getByRole('button', { name: 'web1', exact: true }).waitFor()
  await picture(page, 'hosts')
  await page.getByLabel('Choose web1').check()
  await page.getByLabel('Choose web2').check()
  await page.getByRole('button', { name: 'Run on 2' }).click()
  await page
    .getByLabel('Command')
    .fill(
      'echo "hello from $(hostname)"; echo oops >&2; sleep 1; echo "<img src=x onerror=alert(1)>"; exit 3',
    )
  await picture(page, 'run')
  await page.getByRole('button', { name: 'Run on 2 hosts' }).click()
  await page.getByText('2 failed').waitFor()
  await picture(page, 'task')
  await page.getByRole('button', { name: 'Theme' }).click()
  await page.getByRole('button', { name: 'Theme' }).click()
  await picture(page, 'task-dark')
  await page.getByRole('link', { name: 'Tasks' }).click()
  await page.getByText('2 failed').waitFor()
  await picture(page, 'tasks-dark')
  t.deepEqual(complaints, [])
})
