import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandsOf, freePort, startShell } from '../../helpers/examples/shell.ts'

const bad = 'VERSION=1.2.4-bad'

test('every command of the README works, one after the other', async (t) => {
  const home = temporaryDirectory(t)
  const port = await freePort()
  const shell = startShell(t, home)
  const shown = new Map<string, string>()
  // Like a reader's shell: in the clone, and with aliases.
  const status = async () => (await shell.run('git status --porcelain .')).text
  await shell.run(`shopt -s expand_aliases; cd '${resolve('.')}'`)
  const before = await status()
  for (const written of commandsOf(readFileSync('README.md', 'utf8'))) {
    // The gate itself runs these, because they need npm's registry and minutes.
    if (written === 'npm run package -- executable' || written === 'npm ci && npm test') continue
    if (written === 'npm ci && npm start') {
      // Already installed and built.
      shell.background(`rsm quickstart --port ${port}`)
      await shell.untilShown(/It is up\./)
      continue
    }
    const command = written
      .replaceAll('18080', String(port))
      .replaceAll('/tmp/', `${home}/`)
      .replaceAll(/VERSION=\S+/g, `$& -p DIR='${home}/first-steps'`)
    const { exit, text } = await shell.run(command)
    // A busy machine is a finding of the doctor.
    const meant = written.includes(bad) ? [1] : written.startsWith('rsm hosts doctor') ? [0, 1] : [0]
    if (!t.true(meant.includes(exit), `${command}: exit ${exit}\n${text}`)) return
    shown.set(written, text)
  }
  const textOf = (part: string) =>
    [...shown].find(([written]) => written.includes(part))?.[1] ?? `${part} is not in the README`
  t.true(shown.size > 15, `${shown.size} commands were run`)
  t.regex(textOf('hosts wait'), /^web\[1-3\]: reachable$/m)
  t.regex(textOf('--batch-size 1,50% --script deploy.sh -p VERSION=1.2.3'), /3 hosts: 3 SUCCESS/)
  t.regex(textOf(bad), /web1 \[rollback\]: back to 1\.2\.3\n[^]*3 hosts: 1 FAILED, 2 SKIPPED/)
  t.regex(textOf('logs -f latest'), /web3: step 15 of 15/)
  t.true(existsSync(join(home, 'report.xml')))
  // Agents print to their logs, not to the reader's terminal.
  for (const [written, text] of shown) t.notRegex(text, /rsm agent agt-/, written)
  // These commands ask on a terminal, and the next line of a pasted block would be the answer.
  for (const written of shown.keys()) t.notRegex(written, /rsm exec.* (--all|-a) /)

  const backup = await shell.run(
    `for i in 1 2 3 4 5 6 7 8; do rsm exec -q -w web1 --script backup.sh -p DIR='${home}/first-steps'; sleep 1; done
    ls ${home}/first-steps/web1/backups | wc -l`,
  )
  t.regex(backup.text, /^7$/m)
  await shell.run(`cd '${resolve('.')}'`)
  t.is(await status(), before, 'the clone stays clean')
})
