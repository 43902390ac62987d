import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { upload } from '../../helpers/clients/files.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
})
browserTest.after.always(() => world?.end())

const of = (id: number) => world.server.data('GET', `/api/schedules/${id}`)
const motd = (text: string) => ({ name: 'motd', mimeType: 'text/plain', buffer: Buffer.from(text) })

async function open(t: ExecutionContext, address: string) {
  const opened = await world.open(t)
  const { page } = opened
  await signIn(page, world.server.url, adminLogin)
  await page.goto(`${world.server.url}/#/${address}`)
  const patches: unknown[] = []
  page.on('request', (request) => {
    if (request.method() === 'PATCH') patches.push(request.postDataJSON())
  })
  const at = (field: string) => page.locator(`[data-field="${field}"]`)
  return { ...opened, patches, at }
}

browserTest.serial(
  'a schedule that copies a file can be created, run and edited; edits keep unchanged fields or replace the file',
  async (t) => {
    const { page, complaints, patches, at } = await open(t, 'schedules/new')
    const work = temporaryDirectory(t)
    const target = join(work, 'motd')
    await page.getByLabel('Name', { exact: true }).fill('motd')
    await page.getByLabel('Cron').fill('0 5 * * *')
    await page.getByLabel('On', { exact: true }).fill('web1')
    await page.getByRole('button', { name: 'Copy a file' }).click()
    const create = page.getByRole('button', { name: 'Create the schedule' })
    await page.getByLabel('Path on the hosts').fill(`${work}/`)
    await create.click()
    t.is(await page.evaluate('document.activeElement.name'), 'copy.fileId', 'the missing field has the focus')
    await page.getByLabel('File', { exact: true }).setInputFiles(motd('Welcome.\n'))
    await page.getByLabel('Mode').fill('u=rw')
    await create.click()
    await at('copy.mode').getByRole('alert').getByText('octal').waitFor()
    await page.getByLabel('Mode').fill('0640')
    await page.getByLabel('Keep the replaced file').check()
    t.is(await page.getByLabel('Secret').count(), 0, 'a secret file would be deleted after the first task')
    for (const [kind, width] of [
      ['desk', 1280],
      ['phone', 390],
    ] as const) {
      await page.setViewportSize({ width, height: 1000 })
      await picture(page, `schedule-copy-new-${kind}`)
      t.deepEqual(await faultsOfLook(page), [], kind)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
    await create.click()
    await page.getByRole('heading', { name: 'motd', exact: true }).waitFor()
    const id = Number(/\d+$/.exec(page.url())?.[0])
    const made = await of(id)
    t.like(made.copy, { path: target, kind: 'FILE', mode: '0640', backup: true })
    await page
      .locator('.facts')
      .getByText(/^9 B, SHA-256 [0-9a-f]{12}…$/)
      .waitFor()
    await page.getByText('What it would run now, where and how').click()
    await page.getByText(`copy a file to ${target}, mode 0640, keep replaced files`).waitFor()
    await picture(page, 'schedule-copy')
    t.deepEqual(await faultsOfLook(page), [])
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByRole('button', { name: 'Run it now' }).click()
    await page.locator('.heading .badge', { hasText: 'success' }).waitFor()
    t.is(readFileSync(target, 'utf8'), 'Welcome.\n')
    await page.goBack()

    const edit = page.getByRole('button', { name: 'Edit' })
    const save = page.getByRole('button', { name: 'Save', exact: true })
    await edit.click()
    t.is(await page.getByLabel('Path on the hosts').inputValue(), target)
    t.true(await page.getByLabel('Keep the replaced file').isChecked())
    await at('copy.fileId').getByText('9 B, SHA-256').waitFor()
    // Switching to another kind of work and back keeps the input.
    await page.getByRole('button', { name: 'A command' }).click()
    await page.getByRole('button', { name: 'Copy a file' }).click()
    t.is(await page.getByLabel('Mode').inputValue(), '0640')
    await page.getByLabel('Name', { exact: true }).fill('message of the day')
    await save.click()
    await page.getByRole('heading', { name: 'message of the day' }).waitFor()
    t.deepEqual(patches, [{ name: 'message of the day' }])

    await edit.click()
    await page.getByLabel('File', { exact: true }).setInputFiles(motd('Goodbye.\nTill then.\n'))
    await save.click()
    await page.locator('.facts').getByText(/^20 B/).waitFor()
    const { fileId, ...rest } = made.copy
    const after = await of(id)
    t.deepEqual(after.copy, { ...rest, fileId: after.copy.fileId })
    t.not(after.copy.fileId, fileId)
    await world.server.data('POST', `/api/schedules/${id}/run`)
    await page
      .getByRole('row', { name: /run now, by admin/ })
      .nth(1)
      .waitFor()

    await edit.click()
    await page.getByRole('button', { name: 'A command' }).click()
    await page.getByLabel('Command', { exact: true }).fill('true')
    await save.click()
    // Facts shown when the form closes may be older than the change; the page reads them again.
    await page.locator('.facts').getByText('true', { exact: true }).waitFor()
    t.is(await page.locator('.facts').getByText('File').count(), 0)
    t.like(await of(id), { copy: null, script: { content: 'true' } })
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'stdin, secret params and options of a scheduled script are shown, kept and changed',
  async (t) => {
    const { server } = world
    const work = temporaryDirectory(t)
    const { fileId } = await upload(server, 'a\nb\n')
    const made = await server.data('POST', '/api/schedules', {
      name: 'load',
      everySeconds: 86_400,
      script: {
        name: 'load.sh',
        content: `{ wc -l; echo "\${#TOKEN} \${KEY-none}"; } > ${work}/out`,
        timeout: 77,
      },
      target: { selector: 'web1' },
      stdin: { fileId },
      limitRate: 1_048_576,
      secretParams: { TOKEN: 'hidden', KEY: 'x' },
      maxFailures: '10%',
      queueSeconds: 30,
      concurrency: 5,
      maxOutputBytes: 4096,
    })
    const { page, complaints, patches, at } = await open(t, `schedules/${made.id}`)
    await page.locator('.facts').getByText('4 B, SHA-256').waitFor()
    const edit = page.getByRole('button', { name: 'Edit' })
    const save = page.getByRole('button', { name: 'Save', exact: true })
    const patchOf = async () => {
      const heading = page.getByRole('heading', { name: 'load', exact: true })
      await save.click()
      await heading.waitFor()
      return patches.splice(0)
    }
    await edit.click()
    await page.getByText('Options').click()
    await at('stdin.fileId').getByText('4 B, SHA-256').waitFor()
    t.is(await page.getByLabel('Secret params').inputValue(), 'TOKEN, KEY')
    t.is(await page.getByLabel('Bytes per second').inputValue(), '1M')
    t.is(await page.getByLabel('Allowed failures').inputValue(), '10%')
    t.is(await page.getByLabel('Hosts at once').inputValue(), '5')
    t.deepEqual(await patchOf(), [], 'saving without a change sends nothing')

    await edit.click()
    await page.getByText('Options').click()
    await page.getByLabel('Secret params').fill('TOKEN')
    await page.getByLabel('Hosts at once').fill('6')
    await page.getByLabel('Stdin').setInputFiles(motd('a\nb\nc\n'))
    await picture(page, 'schedule-stdin')
    t.deepEqual(await faultsOfLook(page), [])
    const [patch] = await patchOf()
    const { stdin } = patch as { stdin: { fileId: string } }
    t.deepEqual(patch, { concurrency: 6, secretParams: { KEY: null }, stdin })
    t.like(await of(made.id), { script: made.script, secretParams: ['TOKEN'], maxOutputBytes: 4096 })
    await server.data('POST', `/api/schedules/${made.id}/run`)
    await page.getByRole('row', { name: /1 success/ }).waitFor()
    t.is(readFileSync(`${work}/out`, 'utf8').trim(), '3\n6 none')

    await edit.click()
    await page.getByText('Options').click()
    await page.getByLabel('Remove this file').check()
    await page.getByLabel('Bytes per second').fill('')
    t.deepEqual(await patchOf(), [{ stdin: null, limitRate: null }])
    await page.locator('.facts').getByText('Stdin').waitFor({ state: 'detached' })
    t.deepEqual(complaints, [])
  },
)
