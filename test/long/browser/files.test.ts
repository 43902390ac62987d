import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { upload } from '../../helpers/clients/files.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const partBytes = 1024 * 1024
const maxFileSize = 6 * partBytes

const endings: (() => unknown)[] = []
const file = { teardown: (ending: () => unknown) => endings.unshift(ending) } as unknown as ExecutionContext
let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld('web1', { maxFileSize })
  for (const hostname of ['web2', 'web3']) await realAgent(file, world.server, { hostname })
})
browserTest.after.always(async () => {
  for (const ending of endings) await ending()
  await world?.end()
})

const newest = async () => (await world.server.data('GET', '/api/tasks?size=1')).content[0]

async function openCopy(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Run', exact: true }).click()
  await page.getByRole('button', { name: 'Copy a file', exact: true }).click()
  await page.getByRole('heading', { name: 'Copy a file' }).waitFor()
}

/** Creates a directory for each host, because all of them run on this machine. */
function directories(t: ExecutionContext): string {
  const work = temporaryDirectory(t)
  for (const host of ['web1', 'web2', 'web3']) mkdirSync(join(work, host))
  return work
}

browserTest.serial(
  "a file chosen in the browser is compared and copied, and its task shows the file and each host's result",
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    const work = directories(t)
    const target = (host: string) => join(work, host, 'app.conf')
    const source = join(temporaryDirectory(t), 'app.conf')
    writeFileSync(source, 'listen = 8080\nworkers = 16\n')
    writeFileSync(target('web1'), 'listen = 8080\nworkers = 4\n', { mode: 0o600 })
    writeFileSync(target('web2'), 'listen = 8080\nworkers = 16\n', { mode: 0o640 })
    await signIn(page, server.url, adminLogin)
    await openCopy(page)
    await page.getByLabel('Selector').fill('web[1-2]')
    await page.getByLabel('File', { exact: true }).setInputFiles(source)
    await page.getByLabel('Path on the hosts').fill(`${work}/%h/`)
    await page.getByLabel('Mode').fill('0640')
    await page.getByLabel('Keep the replaced file').check()
    await page.getByLabel('What to do').selectOption('DIFF')
    t.deepEqual(await faultsOfLook(page), [])
    await page.getByRole('button', { name: 'Compare on 2 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    const kinds = page.getByRole('group', { name: 'Kinds of hosts' }).getByRole('button')
    t.deepEqual(await kinds.allTextContents(), ['would change 1', 'unchanged 1'])
    await page.locator('.output .diff-new', { hasText: '+workers = 16' }).waitFor()
    await page.locator('.output .diff-old', { hasText: '-workers = 4' }).waitFor()
    await picture(page, 'task-diff')
    t.is(readFileSync(target('web1'), 'utf8'), 'listen = 8080\nworkers = 4\n', 'a dry run writes nothing')

    await openCopy(page)
    await page.getByLabel('File', { exact: true }).setInputFiles(source)
    await page.getByLabel('Path on the hosts').fill(`${work}/%h/app.conf`)
    await page.getByLabel('Mode').fill('0640')
    await page.getByLabel('Keep the replaced file').check()
    await page.getByLabel('Selector').fill('web[1-2]')
    await page.getByRole('button', { name: 'Show the plan' }).click()
    const plan = page.getByRole('dialog', { name: `Copy app.conf to ${work}/%h/app.conf on 2 hosts?` })
    await plan.getByText('mode 0640, keep replaced files').waitFor()
    await picture(page, 'copy-plan')
    await plan.getByRole('button', { name: 'Copy to 2 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.deepEqual(await kinds.allTextContents(), ['changed 1', 'unchanged 1'])
    const { taskId, copy } = await newest()
    const about = (await page.getByLabel('File', { exact: true }).textContent()) ?? ''
    for (const part of [copy.file.sha256, '27 B', 'Mode0640', 'keeps replaced files', '%h/app.conf'])
      t.true(about.includes(part), part)
    await page.getByRole('button', { name: /^web1 success changed/ }).waitFor()
    await page.getByRole('button', { name: /^web2 success unchanged/ }).waitFor()
    t.is(readFileSync(target('web1'), 'utf8'), readFileSync(source, 'utf8'))
    t.is(statSync(target('web1')).mode & 0o7777, 0o640)
    t.deepEqual(readdirSync(join(work, 'web1')).sort(), ['app.conf', `app.conf.rsm-${taskId}`])
    t.deepEqual(await faultsOfLook(page), [])
    await picture(page, 'task-copy')

    await page.getByRole('link', { name: 'Tasks' }).click()
    const row = page.getByRole('row', { name: /copy to .*app\.conf/ }).first()
    await row.getByText('COPY', { exact: true }).waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'an upload resumes after a cut, and after the page is reloaded and the file chosen again',
  async (t) => {
    const { server } = world
    const { page, complaints } = await world.open(t)
    const work = directories(t)
    const source = join(temporaryDirectory(t), 'big.bin')
    const bytes = randomBytes(4 * partBytes + 17)
    writeFileSync(source, bytes)
    const offsets: number[] = []
    let isCut = true
    await page.route('**/api/files/*?offset=*', (route) => {
      offsets.push(Number(new URL(route.request().url()).searchParams.get('offset')))
      return isCut && offsets.length > 2 ? route.abort() : route.continue()
    })
    const fill = async () => {
      await page.getByLabel('Selector').fill('web3')
      await page.getByLabel('File', { exact: true }).setInputFiles(source)
      await page.getByLabel('Path on the hosts').fill(`${work}/%h/`)
      await page.getByRole('button', { name: 'Copy to 1 host' }).click()
    }
    await signIn(page, server.url, adminLogin)
    await openCopy(page)
    await fill()
    await page.getByText('The server can’t be reached; trying again').waitFor()
    await page.getByText('2.1 MB of 4.2 MB').waitFor()
    await picture(page, 'upload')
    t.deepEqual(await faultsOfLook(page), [])
    await until('another try', () => offsets.length > 3)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: 'Copy to 1 host' }).waitFor()
    t.is(await page.getByRole('alert').count(), 0, 'a stopped upload shows no error')
    t.deepEqual([...new Set(offsets)], [0, partBytes, 2 * partBytes])

    await page.reload()
    await openCopy(page)
    offsets.length = 0
    isCut = false
    await fill()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.deepEqual(
      offsets,
      [2, 3, 4].map((part) => part * partBytes),
      'uploaded parts are not sent again',
    )
    t.true(readFileSync(join(work, 'web3', 'big.bin')).equals(bytes))
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('an upload retries after a short cut', async (t) => {
  const { page, complaints } = await world.open(t)
  const work = directories(t)
  const bytes = randomBytes(2 * partBytes)
  let puts = 0
  await page.route('**/api/files/*?offset=*', (route) => (++puts === 2 ? route.abort() : route.continue()))
  await signIn(page, world.server.url, adminLogin)
  await openCopy(page)
  await page.getByLabel('Selector').fill('web3')
  const chosen = { name: '100%.bin', mimeType: 'application/octet-stream', buffer: bytes }
  await page.getByLabel('File', { exact: true }).setInputFiles(chosen)
  await page.getByLabel('Path on the hosts').fill(`${work}/%h/`)
  await page.getByRole('button', { name: 'Copy to 1 host' }).click()
  await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
  t.is(puts, 3)
  t.true(readFileSync(join(work, 'web3', '100%.bin')).equals(bytes))
  t.deepEqual(complaints, [])
})

browserTest.serial('faults of a copy are shown at their fields, if possible before the upload', async (t) => {
  const { server } = world
  const { page, complaints } = await world.open(t)
  const before = await newest()
  const uploads: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/api/files')) uploads.push(request.method())
  })
  await signIn(page, server.url, adminLogin)
  await openCopy(page)
  const fault = (field: string) => page.locator(`[data-field="${field}"]`).getByRole('alert')
  const small = { name: 'app.conf', mimeType: 'text/plain', buffer: Buffer.from('x\n') }
  const choose = (chosen: typeof small) => page.getByLabel('File', { exact: true }).setInputFiles(chosen)
  const path = page.getByLabel('Path on the hosts')
  const copy = page.getByRole('button', { name: /^(?:Copy to|Compare on) 1 host$/ })
  await page.getByLabel('Selector').fill('web1')
  await path.fill('/etc/app.conf')
  await copy.click()
  t.is(await page.evaluate('document.activeElement.name'), 'copy.fileId', 'the missing field has the focus')
  await choose(small)
  for (const [typed, said] of [
    ['etc/app.conf', 'must be absolute'],
    ['/etc/../app.conf', 'must not contain ".."'],
    ['/etc/%d/app.conf', '%h is the name of the host'],
  ] as const) {
    await path.fill(typed)
    await copy.click()
    await fault('copy.path').getByText(said).waitFor()
    t.is(await path.getAttribute('aria-invalid'), 'true')
  }
  await path.fill('/etc/app.conf')
  await page.getByLabel('What to do').selectOption('DIFF')
  await choose({ ...small, buffer: Buffer.alloc(partBytes + 1, 'x') })
  await copy.click()
  await fault('copy.check').getByText('up to 1 MiB').waitFor()
  await page.getByLabel('What to do').selectOption('CHANGED')
  await page.getByLabel('Mode').fill('rw-r--r--')
  await copy.click()
  await fault('copy.mode').getByText('octal').waitFor()
  await page.getByLabel('Mode').fill('')
  t.deepEqual(uploads, [])

  await page.getByLabel('What to do').selectOption('')
  await choose({ ...small, buffer: Buffer.alloc(maxFileSize + 1) })
  await copy.click()
  await fault('copy.fileId').getByText(/./).waitFor()
  t.deepEqual(uploads, ['POST'])
  await choose(small)
  await page.getByLabel('Owner').fill('two words')
  await page.getByLabel('Group').fill('-1')
  await copy.click()
  await fault('copy.owner').getByText(/./).waitFor()
  await fault('copy.group').getByText(/./).waitFor()
  await picture(page, 'copy-faults')
  t.deepEqual(await faultsOfLook(page), [])
  t.deepEqual(await newest(), before, 'nothing has started')
  t.false(existsSync('/etc/app.conf'))
  t.deepEqual(complaints, [])
})

browserTest.serial('the page of a running copy shows its progress', async (t) => {
  const { server } = world
  const { page, complaints } = await world.open(t)
  const { fileId } = await upload(server, randomBytes(partBytes))
  const { taskId } = await server.data('POST', '/api/tasks', {
    copy: { fileId, path: join(temporaryDirectory(t), 'f'), kind: 'FILE' },
    target: { selector: 'web1' },
    limitRate: 16_384,
  })
  await signIn(page, server.url, adminLogin)
  await page.goto(`${server.url}/#/tasks/${taskId}`)
  await page
    .getByLabel('File', { exact: true })
    .getByText(/^[\d.]+ kB of 1\.0 MB · [\d.]+ kB\/s · .* left$/)
    .waitFor()
  await page.getByRole('button', { name: /^web1 running [\d.]+ kB of 1\.0 MB/ }).waitFor()
  t.deepEqual(await faultsOfLook(page), [])
  await picture(page, 'task-copying')
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  t.deepEqual(complaints, [])
})

browserTest.serial('fetched files can be saved for each host, but not by a VIEWER', async (t) => {
  const { server } = world
  const { page, complaints } = await world.open(t)
  const work = directories(t)
  for (const host of ['web1', 'web2']) writeFileSync(join(work, host, 'app.log'), `of ${host}\n`)
  const { taskId } = await server.data('POST', '/api/tasks', {
    fetch: { path: `${work}/%h/app.log`, kind: 'FILE' },
    target: { selector: 'web[1-3]' },
  })
  await finished(server, taskId)
  await signIn(page, server.url, adminLogin)
  await page.goto(`${server.url}/#/tasks/${taskId}`)
  await page.getByText('ENOENT').first().waitFor()
  const save = page.getByRole('button', { name: /^Save the file of/ })
  t.is(await save.count(), 2, 'the third host has no file')
  for (const host of ['web1', 'web2']) {
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `Save the file of ${host}` }).click(),
    ])
    t.is(saved.suggestedFilename(), `${host}-app.log`)
    t.is(await readFile(await saved.path(), 'utf8'), `of ${host}\n`)
  }
  t.deepEqual(await faultsOfLook(page), [])
  await picture(page, 'task-fetch')
  await page.getByRole('button', { name: 'Retry failed hosts' }).click()
  writeFileSync(join(work, 'web3', 'app.log'), 'of web3\n')
  await page.getByRole('button', { name: 'Run on 1 host' }).click()
  await page.getByRole('button', { name: 'Save the file of web3' }).waitFor()
  await page.getByRole('link', { name: 'Tasks' }).click()
  await page.getByText('FETCH', { exact: true }).first().waitFor()

  const vera = { username: 'vera', password: 'long enough' }
  await server.data('POST', '/api/users', { ...vera, role: 'VIEWER' })
  const { page: hers } = await world.open(t)
  await signIn(hers, server.url, vera)
  await hers.goto(`${server.url}/#/tasks/${taskId}`)
  await hers.getByText('ENOENT').first().waitFor()
  t.is(await hers.getByRole('button', { name: /^Save the file/ }).count(), 0)
  t.deepEqual(complaints, [])
})
