import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { readJoin } from '../../../src/core/endpoint.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandsOf, freePort, startShell } from '../../helpers/examples/shell.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { executable, executableName } from '../../helpers/servers/self-signed.ts'

/** Lines that are not run here, each with the reason. */
const elsewhere: readonly (readonly [line: RegExp, why: string])[] = [
  [/^npm /, 'CI builds the executable'],
  [/^(sudo install|install|scp) /, 'they change the machine'],
  [/^rsm (tui|terminal web1)$/, 'they need a screen: tui.test.ts and terminal.test.ts'],
]

/** The command of a unit, and the variables that it sets. */
function unitOf(path: string): { command: string; variables: string[] } {
  const lines = readFileSync(path, 'utf8').split('\n')
  const valuesOf = (key: string) =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
  const [command = ''] = valuesOf('ExecStart')
  return { command: command.replace('/usr/bin/', ''), variables: valuesOf('Environment') }
}

/** The settings that an installation would write. */
const settingsIn = (text: string): string[] =>
  [...text.matchAll(/^ {2}\+ (RSM_\w+=.*)$/gm)].map(([, setting = '']) => setting)

const whereThere = spawnSync('openssl', ['--version']).error === undefined ? test : test.skip

whereThere(
  'A16 every command of the first hour does what it says, with the units of packaging/',
  async (t) => {
    const home = temporaryDirectory(t)
    const port = await freePort()
    const shell = startShell(t, home)
    const started = {
      server: unitOf('packaging/units/rsm-server.service'),
      agent: unitOf('packaging/units/rsm-agent.service'),
    }
    const own = (text: string) =>
      text
        .replaceAll('/var/lib/rsm', home)
        .replaceAll('/etc/rsm', home)
        .replaceAll('https://rsm1:18080', `https://127.0.0.1:${port}`)
    let password = ''
    let fingerprint = ''
    let ran = 0
    for (const written of commandsOf(readFileSync('docs/start/first-hour.md', 'utf8'), [
      'you$ ',
      'server# ',
      'host# ',
    ])) {
      if (elsewhere.some(([line]) => line.test(written))) continue
      ran++
      if (written === 'rsm server install --host 0.0.0.0 --tls-self-signed') {
        // Not installed on this machine: shown with --dry-run, then started like its unit.
        const { exit, text } = await shell.run(`${written} --dry-run`)
        t.is(exit, 0, text)
        const { command, variables } = started.server
        const set = [...variables, ...settingsIn(text), `RSM_PORT=${port}`].map(own)
        shell.background(`env ${set.join(' ')} ${command}`)
        ;[, password = ''] = await shell.untilShown(/with the password (\S+)/)
        ;[, fingerprint = ''] = await shell.untilShown(/fingerprint (sha256\/\/\S+)/)
        continue
      }
      if (written.startsWith('rsm agent install')) {
        t.is((await shell.run(`${written} --url https://127.0.0.1:${port} --dry-run`)).exit, 0)
        continue
      }
      if (written.startsWith('rsm hosts join')) {
        await handOut({ dataDir: join(home, 'server') }, executable, executableName)
        const { text } = await shell.run(written)
        const [, joinString = ''] = /echo (rsm-join:\S+) \| sh -c .* rsm agent install -$/m.exec(text) ?? []
        // Not installed on this machine: shown with --dry-run, then started like its unit.
        const installed = await shell.run(`rsm agent install - --dry-run <<< '${joinString}'`)
        t.is(installed.exit, 0, installed.text)
        const { command, variables } = started.agent
        const settings = settingsIn(installed.text).filter((each) => !each.includes('TOKEN_FILE'))
        const token = `RSM_AGENT_ENROLL_TOKEN=${readJoin(joinString).token}`
        const set = [...variables, ...settings, token].map(own).join(' ')
        for (const name of ['web1', 'web2', 'web3'])
          shell.background(
            `env ${set.replace('/agent ', `/${name} `)} RSM_AGENT_HOSTNAME=${name} ${command} 2>/dev/null`,
          )
        continue
      }
      const next = `${password} again`
      const asked = written.startsWith('rsm login')
        ? ` --username admin --password-stdin <<< '${password}'`
        : written === 'rsm passwd'
          ? ` --password-stdin <<< '${password}\n${next}'`
          : written.startsWith('rsm users add')
            ? " --password-stdin <<< 'a password of hers'"
            : ''
      const command = own(written).replaceAll('sha256//ivdn...', fingerprint) + asked
      const { exit, text } = await shell.run(command)
      const meant = written === 'rsm hosts doctor' ? [0, 1] : [0]
      if (!t.true(meant.includes(exit), `${command}: exit ${exit}\n${text}`)) return
      if (written.startsWith('rsm hosts list'))
        for (const name of ['web1', 'web2', 'web3']) t.regex(text, new RegExp(`${name} .* env=test`))
      if (written.startsWith('rsm clusters show')) t.regex(text, /2 hosts|web\[1-2\]|web1[^]*web2/)
      if (written.startsWith('rsm enrollments list')) t.regex(text, /3 of 3/)
      if (written === 'rsm passwd') password = next
    }
    t.true(ran > 20, `${ran} commands were run`)
  },
)
