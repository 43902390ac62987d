import type { ExecutionContext } from 'ava'
import { simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import {
  type ConsoleWorld,
  openTerminal,
  say,
  screenHolds,
  startConsoleWorld,
} from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const name75 = 'db-replica-7.eu-central-1a.production.customers.internal.example-company.io'
const name96 =
  'ip-10-24-117-203.autoscaling-workers.eu-central-1.compute.internal.very-long-customer.example.io'
const tenTags = Object.fromEntries(
  ['env', 'role', 'team', 'rack', 'os', 'tier', 'zone', 'owner', 'cost-centre', 'backup-window'].map(
    (key, at) => [
      key,
      [
        'production',
        'database',
        'payments',
        'b12',
        'debian-12',
        'gold',
        'eu-central-1a',
        'ops',
        '4711',
        '02-04',
      ][at],
    ],
  ),
)
const phone = { width: 390, height: 844 }
const desk = { width: 1280, height: 800 }

let world: ConsoleWorld
let taskId: string
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  const { server } = world
  const hosts = await simulateFleet(server, [name75, name96, 'db1', 'db2'], (name) => ({
    exitCode: name === 'db2' ? 4 : 0,
    output: [
      [
        'stdout',
        `${name === 'db2' ? 'other' : 'the same'} words of a longer line that says what there is to say about it\n`,
      ],
      ['stderr', name === 'db2' ? 'cannot find it\n' : ''],
    ],
  }))
  for (const { hostId } of hosts.slice(0, 2))
    await server.data('PATCH', `/api/hosts/${hostId}`, { tags: tenTags })
  await server.data('POST', '/api/hosts', { hostname: 'never-heard', ip: '10.0.0.7', tags: { env: 'test' } })
  const script = {
    name: 'restart-the-payment-service-and-check-it',
    content: 'systemctl restart payments\ncurl -fsS localhost:8080/health',
  }
  const started = await server.data('POST', '/api/tasks', {
    script,
    target: { selector: `${name75},${name96},db[1-2]` },
    params: { VERSION: '1.2.3' },
  })
  taskId = started.taskId
  await until(
    'the end of the task',
    async () => (await server.data('GET', `/api/tasks/${taskId}`)).status === 'FAILED',
  )
})
browserTest.after.always(() => world?.end())

async function looksGood(
  t: ExecutionContext,
  page: Parameters<typeof picture>[0],
  name: string,
): Promise<void> {
  for (const [kind, size] of Object.entries({ desk, phone })) {
    await page.setViewportSize(size)
    await picture(page, `${name}-${kind}`)
    t.deepEqual(await faultsOfLook(page), [], `${name} on a ${kind}`)
  }
  await page.setViewportSize(desk)
}

browserTest.serial(
  'A15 long names of hosts, tags and scripts are neither broken nor cut off, at a desk and on a phone',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('never-heard').waitFor()
    await looksGood(t, page, 'long-hosts')
    const heights = await page.evaluate<number[]>(
      `[...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect().height)`,
    )
    t.true(Math.max(...heights) < 150, `rows are ${heights.join(', ')} px high`)

    await page.getByRole('link', { name: 'Tasks' }).click()
    await page.getByRole('link', { name: /restart-the/ }).waitFor()
    await looksGood(t, page, 'long-tasks')
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.locator('.output').getByText('other words').waitFor()
    await looksGood(t, page, 'long-task')
    await page.getByText('What ran, where and how').click()
    await page.getByText('VERSION=1.2.3').waitFor()
    await looksGood(t, page, 'long-task-script')
    await page.getByText('What ran, where and how').click()
    await page.getByRole('button', { name: 'Fold equal output' }).click()
    await page.getByRole('heading', { name: /\(3\)/ }).waitFor()
    await looksGood(t, page, 'long-task-folded')

    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByLabel('Selector').fill('@*')
    await page.locator('#named').getByText('6 hosts').waitFor()
    await page.getByLabel('Command').fill('uptime')
    await looksGood(t, page, 'long-run')
    await page.getByRole('button', { name: 'Run on 6 hosts' }).click()
    await page.getByRole('dialog').waitFor()
    await looksGood(t, page, 'long-run-asks')
    await page.keyboard.press('Escape')
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'A15 the worst state stands out, counts follow the search, times match the command line, and signing out clears choices',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t, { colorScheme: 'dark' })
    await signIn(page, server.url, adminLogin)
    await page.getByText('Live', { exact: true }).waitFor()
    const groundOf = (state: string) =>
      page.evaluate<string>(
        `getComputedStyle([...document.querySelectorAll('td .badge')].find((one) => one.textContent === '${state}')).backgroundColor`,
      )
    t.is(await groundOf('online'), 'rgba(0, 0, 0, 0)')
    await page.getByText('never-heard').waitFor()
    t.is(await groundOf('offline'), 'rgb(242, 139, 134)', 'filled with the error colour')
    await picture(page, 'hosts-offline-dark')
    await page.getByLabel('Search hosts').fill('never')
    await page.getByRole('button', { name: 'All 1', exact: true }).waitFor()
    await page.getByRole('button', { name: 'offline 1', exact: true }).waitFor()
    await page.getByRole('button', { name: 'online 0', exact: true }).waitFor()
    t.is(await page.locator('.who').getAttribute('title'), 'Signed in as admin (ADMIN)')

    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.locator('.output .text').first().waitFor()
    const places = await page.evaluate<number[]>(
      `[...document.querySelectorAll('.output .text')].map((text) => text.getBoundingClientRect().left)`,
    )
    t.is(new Set(places).size, 1, 'the output of all hosts starts in one column')
    await page.getByRole('link', { name: 'Tasks' }).click()
    t.regex(
      (await page.locator('tbody time').first().textContent()) ?? '',
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/,
    )
    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByText('Ctrl+Enter runs the command').waitFor()
    await page.getByRole('button', { name: 'A stored script' }).click()
    t.is(await page.getByText('Ctrl+Enter').count(), 0)

    await page.getByRole('link', { name: 'Hosts', exact: true }).click()
    await page.getByLabel('Choose db1').check()
    await page.getByRole('button', { name: 'Run on 1' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('User').fill(adminLogin.username)
    await page.getByLabel('Password').fill(adminLogin.password)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Run on …' }).waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('A15 a terminal on a phone has Esc, Ctrl, Tab and arrows', async (t) => {
  const { page, complaints } = await world.open(t, { viewport: phone, hasTouch: true })
  await signIn(page, world.server.url, adminLogin)
  await openTerminal(page, 'web1')
  const press = (name: string) =>
    page.getByRole('group', { name: 'Keys' }).getByRole('button', { name }).tap()
  await say(page, 'echo first-"w"ord')
  await screenHolds(page, '\nfirst-word')
  await press('Up')
  await page.keyboard.type('s\n')
  await screenHolds(page, '\nfirst-words')
  // The interrupt discards input that the shell has not read yet.
  await say(page, 'echo be""gun; sleep 600')
  await screenHolds(page, '\nbegun')
  await press('Ctrl')
  await page.keyboard.type('c')
  await say(page, 'echo "inter""rupted $?"')
  await screenHolds(page, '\ninterrupted 130')
  await say(page, 'cat -v')
  await press('Esc')
  await press('Right')
  await press('Tab')
  await page.keyboard.type('x\n')
  await screenHolds(page, '^[^[[C')
  t.is(await page.getByRole('button', { name: 'Ctrl', exact: true }).getAttribute('aria-pressed'), 'false')
  await picture(page, 'terminal-phone')
  t.deepEqual(await faultsOfLook(page), [])
  await page.getByRole('button', { name: 'End session' }).tap()
  const open = async () => (await world.server.data('GET', '/api/terminals?status=OPEN')).content
  await until('the end of the session', async () => (await open()).length === 0)
  t.deepEqual(complaints, [])
})

browserTest.serial(
  'A15 a VIEWER sees no links to refused pages, and a typed address shows the reason',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t, { viewport: phone })
    const vera = { username: 'vera', password: 'long enough' }
    await server.data('POST', '/api/users', { ...vera, role: 'VIEWER' })
    await signIn(page, server.url, vera)
    t.deepEqual(await page.getByRole('navigation').getByRole('link').allTextContents(), [
      'Hosts',
      'Tasks',
      'Schedules',
    ])
    for (const [address, title] of [
      ['run', 'Run'],
      ['sessions', 'Recordings'],
      ['terminals', 'Terminals'],
      ['schedules/new', 'Schedules'],
    ]) {
      await page.goto(`${server.url}/#/${address}`)
      await page.getByRole('heading', { name: title ?? '' }).waitFor()
      await page.getByText('You are vera, VIEWER; this requires OPERATOR').waitFor()
      t.is(await page.locator('form, .tabs:visible').count(), 0)
    }
    await picture(page, 'refused-phone')
    t.deepEqual(await faultsOfLook(page), [])
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'A15 sessions and recordings fit a phone, and ending a session asks for confirmation',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    await signIn(page, server.url, adminLogin)
    await openTerminal(page, 'web1')
    await say(page, 'echo on-a-des""k')
    await screenHolds(page, 'on-a-desk')
    await page.getByRole('link', { name: 'Recordings' }).click()
    await page.getByRole('row', { name: /web1.*Attach/ }).waitFor()
    await looksGood(t, page, 'open-sessions')
    await page.getByRole('button', { name: 'End' }).click()
    await page.getByRole('dialog', { name: 'End the session of admin on web1?' }).waitFor()
    await page.getByRole('button', { name: 'End the session' }).click()
    await page.getByText('Open now').waitFor({ state: 'detached' })
    await looksGood(t, page, 'long-recordings')
    t.deepEqual(complaints, [])
  },
)
