import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { tarOf } from '../../helpers/tar.ts'

const endings: (() => unknown)[] = []
const file = { teardown: (ending: () => unknown) => endings.unshift(ending) } as unknown as ExecutionContext
let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  await realAgent(file, world.server, { hostname: 'web2' })
})
browserTest.after.always(async () => {
  for (const ending of endings) await ending()
  await world?.end()
})

const newest = async () => (await world.server.data('GET', '/api/tasks?size=1')).content[0]

async function openRun(t: ExecutionContext) {
  const opened = await world.open(t)
  const { page } = opened
  await signIn(page, world.server.url, adminLogin)
  await page.getByRole('link', { name: 'Run', exact: true }).click()
  const at = (field: string) => page.locator(`[data-field="${field}"]`)
  return { ...opened, at }
}

browserTest.serial(
  'a file is fetched from hosts and saved after its plan is shown; faults are shown at their fields',
  async (t) => {
    const { page, complaints, at } = await openRun(t)
    const work = temporaryDirectory(t)
    for (const host of ['web1', 'web2']) {
      mkdirSync(join(work, host))
      writeFileSync(join(work, host, 'app.log'), `of ${host}\n`)
    }
    await page.getByRole('button', { name: 'Fetch a file' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Fetch a file' }).waitFor()
    await page.getByLabel('Selector').fill('web[1-2]')
    const path = page.getByLabel('Path on the hosts')
    const fetch = page.getByRole('button', { name: 'Fetch from 2 hosts' })
    for (const [typed, said] of [
      ['var/log', 'must be absolute'],
      ['/var/../log', 'must not contain ".."'],
      ['/var/log/', 'names a directory'],
    ] as const) {
      await path.fill(typed)
      await fetch.click()
      await at('fetch.path').getByRole('alert').getByText(said).waitFor()
    }
    t.is(await page.evaluate('document.activeElement.name'), 'fetch.path')
    await picture(page, 'fetch-faults')
    t.is(await newest(), undefined, 'nothing has started')
    await path.fill(`${work}/%h/app.log`)
    await page.getByText('Options').click()
    await page.getByLabel('Bytes per second').fill('fast')
    await fetch.click()
    await at('limitRate').getByRole('alert').getByText('like 500K or 10M').waitFor()
    await page.getByLabel('Bytes per second').fill('1K')
    await fetch.click()
    await page.getByRole('button', { name: 'Fetch from all 2 hosts' }).click()
    await at('limitRate').getByRole('alert').getByText(/16384/).waitFor()
    await page.getByLabel('Bytes per second').fill('2M')
    await page.getByRole('button', { name: 'Show the plan' }).click()
    const plan = page.getByRole('dialog', { name: `Fetch ${work}/%h/app.log from all 2 hosts?` })
    await plan.getByText('at most 2.1 MB/s to all hosts').waitFor()
    t.deepEqual(await faultsOfLook(page), [])
    await picture(page, 'fetch-plan')
    await plan.getByRole('button', { name: 'Fetch from all 2 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the file of web2' }).click(),
    ])
    t.is(await readFile(await saved.path(), 'utf8'), 'of web2\n')
    t.like(await newest(), { type: 'FETCH', limitRate: 2 * 1024 * 1024 })
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'a script can have a file of the browser as stdin, secret params and a strategy',
  async (t) => {
    const { page, complaints, at } = await openRun(t)
    const work = temporaryDirectory(t)
    await page.getByLabel('Selector').fill('web[1-2]')
    await page.getByLabel('Command').fill('wc -c; echo "$PLAIN ${#TOKEN} $PWD"')
    await page.getByText('Options').click()
    const stdin = { name: 'rows.csv', mimeType: 'text/csv', buffer: Buffer.from('a;b\n'.repeat(10)) }
    await page.getByLabel('Stdin').setInputFiles(stdin)
    await page.getByLabel('Parameters').fill('PLAIN=seen')
    await page.getByLabel('Secret params').fill('TOKEN')
    const run = page.getByRole('button', { name: 'Run on 2 hosts' })
    await run.click()
    t.is(await page.evaluate('document.activeElement.name'), 'param TOKEN', 'the missing field has the focus')
    t.is(await page.getByLabel('TOKEN').getAttribute('type'), 'password')
    await page.getByLabel('TOKEN').fill('hidden!')
    await page.getByLabel('Batch size').fill('half')
    await page.getByLabel('Working directory').fill(work)
    await page.getByLabel('Hosts at once').fill('1')
    await run.click()
    await page.getByRole('button', { name: 'Run on all 2 hosts' }).click()
    await at('batchSize').getByRole('alert').getByText(/./).waitFor()
    await page.getByLabel('Batch size').fill('1, 50%')
    await page.getByLabel('Strategy').selectOption('ROLLING')
    for (const [kind, size] of [
      ['desk', { width: 1280, height: 1000 }],
      ['phone', { width: 390, height: 844 }],
    ] as const) {
      await page.setViewportSize(size)
      await page.getByLabel('Stdin').scrollIntoViewIfNeeded()
      await picture(page, `run-options-${kind}`)
      t.deepEqual(await faultsOfLook(page), [], kind)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'Show the plan' }).click()
    const plan = page.getByRole('dialog')
    const told = (name: string) =>
      plan
        .locator('dl > div', { has: page.getByText(name, { exact: true }) })
        .locator('dd')
        .textContent()
    await plan.getByText('rows.csv (40 B)').waitFor()
    t.is(await told('batch 1 (1)'), 'web1')
    t.is(await told('TOKEN'), '(secret)')
    await plan.getByRole('button', { name: 'Run on all 2 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    await page.locator('.output').getByText(`seen 7 ${work}`).first().waitFor()
    t.is(await page.locator('.output').getByText('40', { exact: true }).count(), 2)
    const { taskId } = await newest()
    t.like(await world.server.data('GET', `/api/tasks/${taskId}`), {
      strategy: 'ROLLING',
      batchSize: [1, '50%'],
      stdin: { size: 40 },
      params: { PLAIN: 'seen' },
    })
    await page.getByText('What ran, where and how').click()
    await page.locator('.what-ran').getByText('TOKEN (secret)').waitFor()
    await page
      .locator('.what-ran')
      .getByText(/^40 B, SHA-256/)
      .waitFor()
    t.false((await page.content()).includes('hidden!'))
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'a secret file is copied and not kept; a tar archive is unpacked; contradicting options are refused',
  async (t) => {
    const { server } = world
    const { page, complaints, at } = await openRun(t)
    const work = temporaryDirectory(t)
    const uploads: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/api/files')) uploads.push(request.url())
    })
    await page.getByRole('button', { name: 'Copy a file' }).click()
    await page.getByLabel('Selector').fill('web1')
    const chosen = { name: 'key.pem', mimeType: 'text/plain', buffer: Buffer.from('hidden\n') }
    await page.getByLabel('File', { exact: true }).setInputFiles(chosen)
    await page.getByLabel('Path on the hosts').fill(`${work}/`)
    await page.getByLabel('Secret').check()
    await page.getByLabel('What to do').selectOption('DIFF')
    await page.getByRole('button', { name: 'Compare on 1 host' }).click()
    await at('copy.check').getByRole('alert').getByText('would reveal the secret').waitFor()
    t.deepEqual(uploads, [])
    await page.getByLabel('What to do').selectOption('')
    await page.getByRole('button', { name: 'Copy to 1 host' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.is(readFileSync(join(work, 'key.pem'), 'utf8'), 'hidden\n')
    t.true(uploads[0]?.endsWith('secret=true'))
    const { fileId } = (await newest()).copy.file
    t.is((await server.api('GET', `/api/files/${fileId}`)).status, 404)

    const buffer = await tarOf([
      { name: 'css/', type: 'directory', mode: 0o755 },
      { name: 'css/a.css', content: 'a {}\n' },
    ])
    await page.getByRole('link', { name: 'Run', exact: true }).click()
    await page.getByRole('button', { name: 'Copy a file' }).click()
    await page.getByLabel('Selector').fill('web1')
    await page.getByLabel('File', { exact: true }).setInputFiles({ ...chosen, name: 'site.tar', buffer })
    await page.getByLabel('Copy as').selectOption('TREE')
    await page.getByLabel('Path on the hosts').fill(`${work}/there`)
    await page.getByRole('button', { name: 'Copy to 1 host' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    await page.getByLabel('File', { exact: true }).getByText('a directory with its content').waitFor()
    t.is(readFileSync(join(work, 'there/css/a.css'), 'utf8'), 'a {}\n')
    t.false(existsSync(join(work, 'there/site.tar')))
    t.deepEqual(complaints, [])
  },
)
