import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandsOf, freePort, startShell } from '../../helpers/examples/shell.ts'

/** Lines that are not run here, each with what runs it. */
const elsewhere: readonly (readonly [line: RegExp, where: string])[] = [
  [
    /^npm ci && npm (start|run build && npm link|test)$/,
    'CI installs, builds and tests; first-contact.test.ts runs quickstart',
  ],
  [/^rsm terminal web1( --run-as|$)/, 'terminal.test.ts, in tmux'],
  [/^rsm tui$/, 'tui.test.ts, in tmux'],
  [/^export RSM_URL=/, 'a server that is not there'],
]

// Skipped where jq is missing: the README uses it.
const whereThere = spawnSync('jq', ['--version']).error === undefined ? test : test.skip

whereThere('every command of the README does what it says, one after the other', async (t) => {
  const home = temporaryDirectory(t)
  const port = await freePort()
  const shell = startShell(t, home)
  writeFileSync(join(home, 'app.conf'), 'port = 80\n')
  for (const name of ['deploy.sh', 'long-job.sh', 'check.sh', 'rollback.sh', 'backup.sh'])
    writeFileSync(join(home, name), 'echo "on $(hostname) with $VERSION"\n')
  let password = ''
  let taskId = ''
  let sessionId = ''
  let ran = 0
  for (const written of commandsOf(readFileSync('README.md', 'utf8'))) {
    if (elsewhere.some(([line]) => line.test(written))) continue
    const command = written
      .replaceAll('18080', String(port))
      .replaceAll('/tmp/web$i', `${home}/web$i`)
      .replaceAll(':/tmp/', `:${home}/`)
      .replaceAll('TASK', taskId)
      .replaceAll('SESSION', sessionId)
    ran++
    if (written === 'rsm server start') {
      shell.background(`${command} --port ${port}`)
      ;[, password = ''] = await shell.untilShown(/with the password (\S+)/)
      await shell.untilShown(/rsm server listening on http/)
      continue
    }
    const asked = written.startsWith('rsm login')
      ? ` --username admin --password-stdin <<< '${password}'`
      : ''
    const { exit, text } = await shell.run(command + asked)
    // A busy machine is something to complain of.
    const meant = written === 'rsm hosts doctor' ? [0, 1] : [0]
    if (!t.true(meant.includes(exit), `${command}: exit ${exit}\n${text}`)) return
    taskId = /"?\b(01[0-9A-HJKMNP-TV-Z]{24})\b/.exec(text)?.[1] ?? taskId
    if (written.startsWith('rsm hosts wait'))
      for (const name of ['web1', 'web2', 'web3']) t.regex(text, new RegExp(`${name} +(ONLINE|WARNING)`))
    if (written === 'rsm recordings list')
      sessionId = /^([\w-]{20,}) /m.exec(text.replace(/^SESSION.*$/m, ''))?.[1] ?? ''
  }
  t.true(ran > 18, `${ran} commands were run`)
  t.not(sessionId, '')
})
