import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const markup = '<img src=x onerror=alert(1)>'
/** Hosts without an agent, which are UNREACHABLE at once. */
const quietHosts = 1_000
/** More lines than the page holds at once. */
const longOutput = Array.from({ length: 6_000 }, (_, at) => `line ${at + 1} of 6000\n`)
const pieceLines = 500

let world: ConsoleWorld
let quietId: number
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  const { server } = world
  const add = async (hostname: string) =>
    (await server.data('POST', '/api/hosts', { hostname, ip: '10.0.0.7', tags: {} })).id as number
  for (let from = 0; from < quietHosts; from += 50) {
    const names = Array.from({ length: 50 }, (_, at) => `quiet${from + at + 1}`)
    ;[quietId = 0] = await Promise.all(names.map(add))
  }
  await simulateFleet(server, ['sim1', 'sim2', 'sim3', 'sim4'], (name, { script }) => {
    if (script.includes('seq') && name === 'sim1')
      return {
        output: Array.from({ length: longOutput.length / pieceLines }, (_, at) => [
          'stdout' as const,
          longOutput.slice(at * pieceLines, (at + 1) * pieceLines).join(''),
        ]),
      }
    return { output: [['stdout', name === 'sim4' ? `other\r\n${markup}\n` : 'equal words\n']] }
  })
})
browserTest.after.always(() => world?.end())

async function ended(taskId: string): Promise<void> {
  await until(
    'the end',
    async () => (await world.server.data('GET', `/api/tasks/${taskId}?size=1`)).status !== 'RUNNING',
  )
}

async function saved(page: Page): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download' }).click(),
  ])
  return readFile(await file.path(), 'utf8')
}

browserTest.serial(
  'A15 the page of a task on 1,004 hosts lists all of them in parts, filtered by name and status',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    const { taskId } = await server.data('POST', '/api/tasks', {
      script: { content: 'true' },
      target: { selector: 'quiet*,sim*' },
      queueSeconds: 0,
    })
    await ended(taskId)
    await signIn(page, server.url, adminLogin)
    const began = performance.now()
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.getByRole('button', { name: 'All 1004 hosts' }).waitFor()
    t.log(`shown after ${Math.round(performance.now() - began)} ms`)
    const rows = page.locator('.results > li')
    t.is(await rows.count(), 202, 'one row for all hosts, 200 hosts, and one to show more')
    for (let more = 0; more < 5; more++) await page.getByRole('button', { name: /^Show .* more/ }).click()
    await page.getByRole('button', { name: /^quiet1000 / }).waitFor()
    t.is(await rows.count(), 1005)
    t.is(await page.getByRole('button', { name: /^Show .* more/ }).count(), 0)
    await picture(page, 'task-1004-hosts')
    await page.getByLabel('Search hosts').fill('QUIET777')
    await page.getByRole('button', { name: /^quiet777 / }).waitFor()
    t.is(await rows.count(), 2)
    await page.getByLabel('Search hosts').fill('')
    await page.getByLabel('Status of hosts').selectOption('SUCCESS')
    await page.getByRole('button', { name: /^sim4 / }).waitFor()
    t.is(await rows.count(), 5)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('A15 the page of a task shows its script, params, target and options', async (t) => {
  const { server } = world
  const { page, complaints } = await world.open(t)
  const script = await server.data('POST', '/api/scripts', {
    name: 'deploy',
    type: 'BASH',
    content: `# a comment\necho "$VERSION" '${markup}'\n`,
  })
  const { taskId } = await server.data('POST', '/api/tasks', {
    scriptId: script.id,
    target: { selector: 'sim[1-4]' },
    params: { VERSION: '1.2.3' },
    secretParams: { PASSWORD: 'never shown' },
    strategy: 'ROLLING',
    batchSize: [1, '50%'],
    timeout: 77,
    runAs: 'deployer',
  })
  await ended(taskId)
  await signIn(page, server.url, adminLogin)
  await page.goto(`${server.url}/#/tasks/${taskId}`)
  await page.getByText('What ran, where and how').click()
  const about = page.locator('.what-ran')
  await about.getByText('VERSION=1.2.3').waitFor()
  const text = (await about.textContent()) ?? ''
  for (const part of [
    'deploy, version 1 (BASH)',
    'PASSWORD (secret)',
    'batch by batch, batches of 1, then 50%',
    '77 s on each host',
    'deployer',
    'sim[1-4]',
    script.sha256,
    `# a comment\necho "$VERSION" '${markup}'`,
  ])
    t.true(text.includes(part), part)
  t.false((await page.content()).includes('never shown'))
  t.is(await page.locator('img').count(), 0)
  t.deepEqual(complaints, [])
})

browserTest.serial(
  'A15 output can be searched completely, folded if equal, and saved for one host or all',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    const { taskId } = await server.data('POST', '/api/tasks', {
      script: { content: 'seq 6000' },
      target: { selector: 'sim[1-4]' },
    })
    await ended(taskId)
    await signIn(page, server.url, adminLogin)
    await page.goto(`${server.url}/#/tasks/${taskId}`)
    await page.getByText('Earlier output is not shown here').waitFor()
    const search = page.getByLabel('Search output')
    await search.fill('line 5999 OF')
    await page.locator('.output mark', { hasText: 'line 5999 of' }).waitFor()
    await page.getByText('1 line in the end of the output').waitFor()
    await search.fill('line 17 ')
    await page.getByText('No line contains this').waitFor()
    await page.getByRole('button', { name: 'Search all output' }).click()
    await page.locator('.output .text', { hasText: 'line 17 of 6000' }).waitFor()
    t.is(await page.locator('.output .text').count(), 1)
    await search.fill('')

    const lines = (await saved(page)).split('\n')
    t.is(lines.filter((line) => line.startsWith('sim1: line ')).length, 6_000)
    t.true(lines.includes('sim2: equal words'))
    t.true(lines.includes(`sim4: ${markup}`))
    await page.getByRole('button', { name: /^sim1 / }).click()
    t.is(await saved(page), longOutput.join(''), 'only the bytes of this host')

    await page.getByRole('button', { name: 'All 4 hosts' }).click()
    await page.getByRole('button', { name: 'Fold equal output' }).click()
    const titles = page.locator('.output h2')
    await titles.getByText('sim[2-3] (2)').waitFor()
    t.deepEqual(await titles.allTextContents(), ['sim[2-3] (2)', 'sim1', 'sim4'])
    t.is(
      await page.locator('.output section', { hasText: 'sim4' }).locator('pre').textContent(),
      `other\n${markup}\n`,
    )
    await picture(page, 'task-folded')
    await search.fill('EQUAL')
    await titles.getByText('sim4').waitFor({ state: 'detached' })
    t.deepEqual(await titles.allTextContents(), ['sim[2-3] (2)'])
    t.is(await page.locator('img').count(), 0)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('A15 tasks are filtered by status, user, host and script', async (t) => {
  const { server } = world
  const { page, complaints } = await world.open(t)
  const otto = { username: 'otto', password: 'long enough' }
  await server.data('POST', '/api/users', { ...otto, role: 'OPERATOR' })
  const { body } = await server.api('POST', '/api/auth/login', otto)
  const bearer = { authorization: `Bearer ${body.data.token}` }
  const run = async (name: string, hostIds: number[]) =>
    server.api(
      'POST',
      '/api/tasks',
      { script: { name, content: 'true' }, target: { hostIds }, queueSeconds: 0 },
      bearer,
    )
  await run('by otto', [world.hostId])
  await signIn(page, server.url, adminLogin)
  await page.getByRole('link', { name: 'Tasks' }).click()
  const rows = page.locator('tbody tr')
  await rows.getByText('by otto').waitFor()
  const shows = async (count: number) =>
    until(`${count} tasks`, async () => (await rows.count()) === count, 10_000)
  await shows(4)
  await page.getByLabel('User').fill('otto')
  await shows(1)
  await run('another', [quietId])
  await rows.getByText('another').waitFor()
  await shows(2)
  await page.getByLabel('Host').fill('web1')
  await shows(1)
  await page.getByLabel('User').fill('')
  await page.getByLabel('Host').fill('sim1')
  await shows(3)
  await page.getByLabel('Script').selectOption({ label: 'deploy' })
  await shows(1)
  await page.getByLabel('Script').selectOption('')
  await page.getByLabel('Host').fill('')
  await page.getByLabel('Status').selectOption('FAILED')
  await shows(2)
  await page.getByLabel('Host').fill('smi1')
  await page.getByRole('alert').getByText('no such host: smi1').waitFor()
  t.is(await rows.count(), 0, 'an invalid filter shows no list')
  await picture(page, 'tasks-filtered')
  await page.getByLabel('Host').fill('sim2')
  await page.getByRole('alert').waitFor({ state: 'detached' })
  t.deepEqual(complaints, [])
})
