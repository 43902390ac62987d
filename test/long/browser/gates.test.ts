import { existsSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../../helpers/clients/console.ts'
import { faultsOfLook } from '../../helpers/clients/looks.ts'
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const endings: (() => unknown)[] = []
const file = { teardown: (ending: () => unknown) => endings.unshift(ending) } as unknown as ExecutionContext

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
  for (const hostname of ['web2', 'web3']) await realAgent(file, world.server, { hostname })
  const content = '#!/bin/bash\n# rsm: param PORT default=8000 pattern="[0-9]+"\necho "undone, port $PORT"'
  await world.server.data('POST', '/api/scripts', { name: 'undo', type: 'BASH', content, timeout: 7 })
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
  const gate = (name: string) => page.getByRole('group', { name, exact: true })
  const at = (field: string) => page.locator(`[data-field="${field}"]`)
  return { ...opened, gate, at }
}

browserTest.serial(
  "gates are entered in Run, shown in the plan, and shown by phase and host on the task's page",
  async (t) => {
    const { page, complaints, gate } = await openRun(t)
    await page.getByLabel('Selector').fill('web[1-3]')
    await page.getByLabel('Command').fill('printf deployed')
    await page.getByText('Verify and roll back').click()
    await gate('Verify').getByRole('button', { name: 'A command' }).click()
    await page
      .getByLabel('Verify command')
      .fill('echo "asked in $RSM_PHASE"; [ "$RSM_HOST" = web1 ] || exit 3')
    await page.getByLabel('Retries').fill('1')
    await page.getByLabel('Seconds between tries').fill('0')
    await gate('Roll back').getByRole('button', { name: 'A stored script' }).click()
    await page.getByLabel('Rollback script').selectOption({ label: 'undo' })
    await page.getByLabel('PORT').fill('9000')
    t.deepEqual(await faultsOfLook(page), [])
    await picture(page, 'run-gates')

    await page.getByRole('button', { name: 'Show the plan' }).click()
    const plan = page.getByRole('dialog', { name: 'Run ‘printf deployed’ on all 3 hosts?' })
    const told = (name: string) => plan.locator('dl > div', { hasText: name }).locator('dd').textContent()
    await plan.getByText('web[1-3]').waitFor()
    t.regex((await told('verify')) ?? '', /\(BASH\), again up to 1 time, every 0 s; 300 s each$/)
    t.is(await told('rollback'), 'undo (BASH); 7 s')
    t.is(await told('PORT'), '9000')
    await plan.getByText('Verify script').click()
    await plan.getByText('asked in $RSM_PHASE').last().waitFor()
    await picture(page, 'run-gates-plan')
    await page.keyboard.press('Escape')
    t.is(await newest(), undefined, 'a plan starts nothing')

    await page.getByRole('button', { name: 'Run on 3 hosts' }).click()
    await plan.getByRole('button', { name: 'Run on all 3 hosts' }).click()
    await page.locator('.heading .badge', { hasText: 'failed' }).waitFor()
    const kinds = page.getByRole('group', { name: 'Kinds of hosts' })
    t.deepEqual(await kinds.getByRole('button').allTextContents(), ['verify failed 2', 'rolled back 2'])
    await kinds.getByRole('button', { name: 'verify failed 2' }).click()
    const rows = page.locator('.results > li')
    t.is(await rows.count(), 3, 'one row for all hosts, and two hosts')
    await page.getByRole('button', { name: /^web2 / }).click()
    const phases = page.getByRole('group', { name: 'Phases of web2' })
    t.is(
      await phases.textContent(),
      '✓ script succeeded✗ verify failed, exit 3, 2 tries✓ rollback succeeded' +
        'verification failed: exit code 3 (the last of 2 attempts)',
    )
    const lines = async () =>
      (await page.locator('.output > div').allTextContents()).map((line) => line.replace('web2', ''))
    t.deepEqual(await lines(), [
      'scriptdeployed',
      'verifyasked in VERIFY',
      'verifyasked in VERIFY',
      'rollbackundone, port 9000',
    ])
    await picture(page, 'task-gates')
    t.deepEqual(await faultsOfLook(page), [])
    await page.getByLabel('Phase', { exact: true }).selectOption('ROLLBACK')
    t.deepEqual(await lines(), ['rollbackundone, port 9000'])
    await page.getByRole('button', { name: /^All 3/ }).click()
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    const text = await readFile(await saved.path(), 'utf8')
    for (const line of [
      'web1: deployed',
      'web1 [verify]: asked in VERIFY',
      'web3 [rollback]: undone, port 9000',
    ])
      t.true(text.split('\n').includes(line), line)
    await page.getByRole('button', { name: 'Fold equal output' }).click()
    await page.locator('.output h2').getByText('web[2-3] (2)').waitFor()
    await page.locator('.output pre', { hasText: '[rollback]\nundone' }).waitFor()
    await page.getByText('What ran, where and how').click()
    const about = page.locator('.what-ran')
    await about.getByText('undo (BASH); 7 s').waitFor()
    await about.getByLabel('Rollback').getByText('# rsm: param PORT').waitFor()
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('the page updates the phases of hosts as they run', async (t) => {
  const { page, complaints } = await world.open(t)
  const work = temporaryDirectory(t)
  const waits = (name: string) => `until [ -e ${work}/${name} ]; do sleep 0.05; done`
  const { taskId } = await world.server.data('POST', '/api/tasks', {
    script: { content: waits('deployed') },
    verify: { script: { content: `${waits('asked')}; [ "$RSM_HOST" = web1 ]` } },
    rollback: { script: { content: `${waits('undone')}; exit 4` } },
    target: { selector: 'web[1-2]' },
  })
  await signIn(page, world.server.url, adminLogin)
  await page.goto(`${world.server.url}/#/tasks/${taskId}`)
  const says = (host: string, phase: string) =>
    page
      .getByRole('button', { name: new RegExp(`^${host} `) })
      .locator(`[title="${phase}"]`)
      .waitFor()
  await says('web1', 'script: running')
  await says('web2', 'verify: waiting')
  writeFileSync(join(work, 'deployed'), '')
  await says('web1', 'script: succeeded')
  await says('web2', 'verify: running')
  await page.getByRole('button', { name: 'verifying 2' }).waitFor()
  writeFileSync(join(work, 'asked'), '')
  await says('web1', 'rollback: not run')
  await page.getByRole('button', { name: 'rolling back 1' }).waitFor()
  await says('web2', 'rollback: running')
  await says('web2', 'script: ended')
  t.false(existsSync(join(work, 'undone')))
  writeFileSync(join(work, 'undone'), '')
  await page.getByRole('button', { name: 'rollback failed 1' }).waitFor()
  await says('web2', 'rollback: failed, exit 4')
  await says('web2', 'verify: failed, exit 1')
  t.regex(
    (await page.locator('.results > li').nth(1).textContent()) ?? '',
    /^web2/,
    'the failed host is first',
  )
  t.deepEqual(complaints, [])
})

browserTest.serial(
  'faults of the form are shown at their fields, and folded sections are opened for them',
  async (t) => {
    const { page, complaints, gate, at } = await openRun(t)
    const before = await newest()
    const run = page.getByRole('button', { name: /^Run/ })
    await page.getByLabel('Command').fill('true')
    await run.click()
    await at('target').getByRole('alert').getByText('Choose hosts or enter a selector.').waitFor()
    await page.getByLabel('Selector').fill('web1')
    t.is(await page.getByRole('alert').count(), 0, 'the message disappears while the input is corrected')

    const [gates, options] = [page.getByText('Verify and roll back'), page.getByText('Options')]
    await gates.click()
    await gate('Verify').getByRole('button', { name: 'A command' }).click()
    await gates.click()
    await run.click()
    await until('the missing field has the focus', async () =>
      page.evaluate<boolean>('document.activeElement.name === "verify.script.content"'),
    )
    await page.getByLabel('Verify command').fill('  ')
    await options.click()
    await page.getByLabel('Run as').fill('Not A User')
    await page.getByLabel('Parameters').fill('PATH=/tmp')
    await options.click()
    await gates.click()
    await run.click()
    await at('verify.script.content').getByRole('alert').getByText(/./).waitFor()
    await at('runAs').getByRole('alert').getByText(/./).waitFor()
    await at('params')
      .getByRole('alert')
      .getByText(/^PATH: /)
      .waitFor()
    t.is(await page.getByLabel('Run as').getAttribute('aria-invalid'), 'true')
    await picture(page, 'run-faults')
    t.deepEqual(await faultsOfLook(page), [])

    await page.getByLabel('Run as').fill('')
    await page.getByLabel('Parameters').fill('')
    await page.getByLabel('Verify command').fill('true')
    await page.getByLabel('Retries').fill('1001')
    await run.click()
    await until('the field with too large a number has the focus', async () =>
      page.evaluate<boolean>('document.activeElement.name === "verify.retries"'),
    )
    t.deepEqual(await newest(), before, 'nothing has started')
    t.deepEqual(complaints, [])
  },
)
