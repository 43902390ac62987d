import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const markup = '<img src=x onerror=alert(1)>'
let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  const { server } = world
  await server.data('POST', '/api/hosts', { hostname: 'away', ip: '10.0.0.7', tags: { note: markup } })
  await server.data('POST', '/api/scripts', {
    name: markup,
    description: markup,
    type: 'BASH',
    content: 'echo "$WHAT"',
  })
})
test.after.always(() => world?.end())

browserTest.serial(
  'S06 a script runs on chosen hosts with live output; markup from hosts and users stays text',
  async (t) => {
    const { page, complaints } = await world.open(t)
    await page.goto(world.server.url)
    await picture(page, 'sign-in')
    await signIn(page, world.server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText(`note:${markup}`).waitFor()
    await picture(page, 'hosts')
    await page.getByLabel('Choose web1').check()
    await page.getByRole('button', { name: 'Run on 1' }).click()
    await page
      .getByLabel('Command')
      .fill(
        `echo '${markup}'; printf '\\033[31mred\\033[0m\\n'; read -t 3 < <(sleep 3); echo oops >&2; exit 3`,
      )
    await picture(page, 'run')
    await page.keyboard.press('Control+Enter')
    await page.locator('.output').getByText(markup).waitFor()
    await page.locator('.badge', { hasText: 'running' }).first().waitFor()
    await page.locator('.stderr').getByText('oops').waitFor()
    await page.getByText('exit 3').waitFor()
    t.is(await page.locator('.output .text').nth(1).textContent(), 'red')
    await picture(page, 'task')

    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByRole('button', { name: 'A stored script' }).click()
    await page.getByLabel('Script').selectOption({ index: 1 })
    await page.getByText('Options').click()
    await page.getByLabel('Parameters').fill(`WHAT=${markup}`)
    await page.getByRole('button', { name: 'Run on web1' }).click()
    await page.getByRole('heading', { name: markup }).waitFor()
    await page.locator('.output').getByText(markup).waitFor()
    await page.getByRole('link', { name: 'Tasks' }).click()
    await page.getByRole('link', { name: markup, exact: true }).waitFor()
    t.is(await page.locator('img').count(), 0)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  "a running task can be cancelled, and the list of hosts follows the server's events",
  async (t) => {
    const { server, hostId } = world
    const { page, complaints } = await world.open(t, { colorScheme: 'dark' })
    await signIn(page, server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    await server.data('POST', '/api/hosts', { hostname: 'new-one', ip: '10.0.0.8', tags: {} })
    await page.getByRole('button', { name: 'new-one', exact: true }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('10.0.0.8')
    await page.getByRole('button', { name: 'web1', exact: true }).waitFor({ state: 'detached' })
    await picture(page, 'hosts-dark')
    const { taskId } = await server.data('POST', '/api/tasks', {
      script: { content: 'echo begun; sleep 600' },
      target: { hostIds: [hostId] },
    })
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.locator('.output').getByText('begun').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('.heading .badge', { hasText: 'cancelled' }).waitFor()
    await picture(page, 'task-dark')
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'the keyboard alone signs in, finds a host, runs a command and changes the theme',
  async (t) => {
    const { server } = world
    const { page } = await world.open(t)
    const focused = () =>
      page.evaluate<string>(
        'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent',
      )
    const tabTo = async (name: RegExp) => {
      for (let steps = 0; steps < 40 && !name.test(await focused()); steps++) await page.keyboard.press('Tab')
      t.regex(await focused(), name)
    }
    await page.goto(server.url)
    await page.getByLabel('User').waitFor()
    await page.keyboard.type(adminLogin.username)
    await page.keyboard.press('Tab')
    await page.keyboard.type(`${adminLogin.password}\n`)
    await page.getByRole('button', { name: 'web1', exact: true }).waitFor()
    await tabTo(/^Skip to content$/)
    const ring = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    t.is(ring, 'solid', 'the focus is visible')
    await page.keyboard.press('/')
    await page.keyboard.type('web')
    await tabTo(/^Choose web1$/)
    await page.keyboard.press('Space')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    t.regex(await focused(), /^Run on 1$/)
    await page.keyboard.press('Enter')
    await page.getByLabel('Command').waitFor()
    await tabTo(/^Skip to content$/)
    await page.keyboard.press('Enter')
    for (let steps = 0; steps < 9; steps++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate('document.activeElement.name')) === 'content') break
    }
    await page.keyboard.type('echo by-keyboard')
    await page.keyboard.press('Control+Enter')
    await page.locator('.output').getByText('by-keyboard').waitFor()
    const theme = () => page.evaluate('document.documentElement.dataset.theme')
    t.is(await theme(), 'light')
    await tabTo(/^Theme/)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await until('dark', async () => (await theme()) === 'dark')
    await page.reload()
    t.is(await theme(), 'dark')
  },
)

browserTest.serial('the list of hosts is polled if no stream of events gets through', async (t) => {
  const { page, context } = await world.open(t)
  await context.route('**/api/events**', (route) => route.abort())
  await signIn(page, world.server.url, adminLogin)
  await page.getByText('Every 10 s').waitFor()
  const row = page.getByRole('row', { name: /web1/ })
  await row.waitFor()
  t.regex((await row.textContent()) ?? '', /online/)
})

browserTest.serial('an ended session leads back to the sign-in page with a message', async (t) => {
  const { server } = world
  const { page } = await world.open(t)
  const user = { username: 'vera', password: 'long enough' }
  const { id } = await server.data('POST', '/api/users', { ...user, role: 'VIEWER' })
  await page.goto(server.url)
  await page.getByLabel('User').fill(user.username)
  await page.getByLabel('Password').fill('wrong password')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText(/./).waitFor()
  await signIn(page, server.url, user)
  await page.getByText('web1', { exact: true }).waitFor()
  t.is(
    await page.getByRole('button', { name: /Terminal|Run/ }).count(),
    0,
    'a VIEWER has no buttons to run anything',
  )
  await server.data('PATCH', `/api/users/${id}`, { enabled: false })
  await page.getByText('Your session has ended').waitFor()
  t.is(await page.evaluate('sessionStorage.getItem("rsm.session")'), null)
})

browserTest.serial(
  'S08 pages of another origin can neither frame the console nor open a terminal, and tickets never leak',
  async (t) => {
    const { server, hostId } = world
    const foreign = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end(`<iframe src="${server.url}/"></iframe>`)
    })
    await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
    t.teardown(() => foreign.close())
    const { page, context } = await world.open(t)
    await page.goto(`http://localhost:${(foreign.address() as AddressInfo).port}/`)
    const refused = page.frames()[1]
    t.truthy(refused)
    t.is(await refused?.locator('#app').count(), 0)
    const { path, ticket } = await server.data('POST', '/api/terminals', {
      hostId,
      cols: 80,
      rows: 24,
      shell: 'sh',
    })
    const address = `${server.url.replace('http', 'ws')}${path}?ticket=${ticket}`
    const outcome = await page.evaluate(`new Promise((resolve) => {
    const socket = new WebSocket(${JSON.stringify(address)})
    socket.onopen = () => resolve('opened')
    socket.onerror = () => resolve('refused')
  })`)
    t.is(outcome, 'refused')

    const own = await context.newPage()
    const requests: { url: string; referer: string | undefined }[] = []
    own.on('request', (request) => requests.push({ url: request.url(), referer: request.headers().referer }))
    await signIn(own, server.url, adminLogin)
    await own.getByRole('button', { name: 'Terminal on web1' }).click()
    await own.locator('.strip.open').waitFor()
    t.true(requests.length > 5)
    t.deepEqual(
      requests.filter(
        ({ url, referer }) =>
          (referer ?? '') !== '' || url.includes('ticket=') || !url.startsWith(server.url),
      ),
      [],
    )
    t.notRegex(own.url(), /ticket/)
  },
)
