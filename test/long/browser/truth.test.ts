import { type SimulatedHost, simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

let world: ConsoleWorld
let hosts: SimulatedHost[]
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  hosts = await simulateFleet(world.server, ['sim1', 'sim2', 'sim3'], () => ({ goesOn: true }))
})
browserTest.after.always(() => world?.end())

browserTest.serial(
  'A15 changes of hosts between reading a task and its stream are shown, and so are changes during a cut',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    const { taskId } = await server.data('POST', '/api/tasks', {
      script: { content: 'true' },
      target: { selector: 'sim[1-3]' },
      strategy: 'SEQUENTIAL',
    })
    const statuses = async () => {
      const { results } = await server.data('GET', `/api/tasks/${taskId}`)
      return results.map(({ status }: { status: string }) => status).join(' ')
    }
    const becomes = (wanted: string) => until(wanted, async () => (await statuses()) === wanted)
    await becomes('RUNNING PENDING PENDING')
    let streams = 0
    await page.route('**/logs?follow=true**', async (route) => {
      streams++
      if (streams === 1) {
        // The stream starts after the first host has ended, while the second runs, and is cut at once.
        hosts[0]?.end(taskId)
        await becomes('SUCCESS RUNNING PENDING')
        const data = JSON.stringify((await server.data('GET', '/api/tasks')).content[0])
        return route.fulfill({ contentType: 'text/event-stream', body: `event: task\ndata: ${data}\n\n` })
      }
      if (streams === 2) {
        await row('sim2', 'running')
        hosts[1]?.end(taskId)
        await becomes('SUCCESS SUCCESS RUNNING')
      }
      return route.continue()
    })
    const row = (name: string, state: string) =>
      page
        .locator('.results button', { hasText: name })
        .filter({ hasText: state })
        .waitFor({ timeout: 10_000 })
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await row('sim1', 'success')
    await row('sim2', 'success')
    await row('sim3', 'running')
    t.regex((await page.locator('.heading').textContent()) ?? '', /1 running, 2 success/)
    hosts[2]?.end(taskId)
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'A15 a host without a link is marked at once in the list of hosts and in Run',
  async (t) => {
    const { page, complaints } = await world.open(t)
    await signIn(page, world.server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    await hosts[2]?.agent.cut()
    const row = page.getByRole('row', { name: /sim3/ })
    await row.getByText('no link', { exact: true }).waitFor()
    await row.getByText(/no link for \d+ s/).waitFor()
    await page.getByRole('button', { name: 'no link 1' }).click()
    await page.getByRole('row', { name: /sim1/ }).waitFor({ state: 'detached' })
    await picture(page, 'hosts-no-link')
    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByLabel('Selector').fill('sim[1-3]')
    await page.locator('#named .away', { hasText: /sim3: NO LINK for/ }).waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'A15 every list shows that the server cannot be reached, and keeps its rows instead of claiming to be empty',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Tasks' }).click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await server.stop()
    await page.getByRole('link', { name: 'Hosts' }).click()
    await page.getByRole('alert').getByText('can’t be reached').waitFor()
    await page.getByRole('row', { name: /web1/ }).waitFor()
    t.is(await page.getByText('No hosts yet').count(), 0)
    await picture(page, 'hosts-lost')
    await page.getByRole('link', { name: 'Tasks' }).click()
    await page.getByRole('alert').getByText('can’t be reached').waitFor()
    await server.restart()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Hosts' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    t.is(await page.getByText('No hosts yet').count(), 0)
    t.deepEqual(complaints, [])
  },
)
