import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type Service, systemService, userService } from '../../src/install/service.ts'
import { dropInText, unitText } from '../../src/install/systemd.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const server = systemService('server')
const agent = systemService('agent')
const mine = userService('agent', (kind) => `/home/ann/.${kind.toLowerCase()}`)
const lineOf = (text: string, key: string) => text.split('\n').filter((line) => line.startsWith(`${key}=`))

test('a unit starts the installed program with its own settings and data', (t) => {
  const text = unitText(agent, ['/opt/rsm/bin/rsm'])
  t.deepEqual(lineOf(text, 'ExecStart'), ['ExecStart=/opt/rsm/bin/rsm agent run'])
  t.deepEqual(lineOf(text, 'EnvironmentFile'), ['EnvironmentFile=-/etc/rsm/agent.env'])
  t.deepEqual(lineOf(text, 'StateDirectory'), ['StateDirectory=rsm/agent'])
  t.deepEqual(lineOf(text, 'KillMode'), ['KillMode=process'])
  const odd = unitText(server, ['/opt/a b/50%/$x/node', '/opt/"q"'])
  t.deepEqual(lineOf(odd, 'ExecStart'), ['ExecStart="/opt/a b/50%%/$$x/node" "/opt/\\"q\\"" server start'])
})

test('a drop-in adds the server’s writable paths and options of newer versions of systemd', (t) => {
  t.is(dropInText(server, 255, []), null)
  t.is(
    dropInText(server, 252, ['/srv/rsm', '-/srv/50% "full"']),
    '[Service]\nReadWritePaths=/srv/rsm\nReadWritePaths="-/srv/50%% \\"full\\""\n',
  )
  t.is(dropInText(agent, 253, []), null)
  t.deepEqual(lineOf(dropInText(agent, 254, []) ?? '', 'DelegateSubgroup'), ['DelegateSubgroup=agent'])
  t.is(dropInText(mine, 254, []), null)
})

test("a user's unit needs nothing of the system, and starts with the user", (t) => {
  const text = unitText(mine, ['/home/ann/.local/bin/rsm'])
  t.deepEqual(lineOf(text, 'WantedBy'), ['WantedBy=default.target'])
  t.deepEqual(lineOf(text, 'EnvironmentFile'), ['EnvironmentFile=-/home/ann/.config/rsm/agent.env'])
  t.deepEqual(lineOf(text, 'Environment'), ['Environment=RSM_AGENT_DATA_DIR=/home/ann/.state/rsm/agent'])
  t.deepEqual(lineOf(text, 'StateDirectory'), [])
})

const version = Number(
  /^systemd (\d+)/.exec(spawnSync('systemd-analyze', ['--version']).stdout?.toString() ?? '')?.[1],
)
// Skipped (2026-11-22) without systemd-analyze: no other program validates a unit.
const whereThere = Number.isNaN(version) ? test.skip : test

/** Output of `systemd-analyze verify` for a unit with its drop-in. */
function verified(t: ExecutionContext, service: Service, text: string) {
  const directory = temporaryDirectory(t)
  const file = join(directory, `${service.unit}.service`)
  writeFileSync(file, text)
  mkdirSync(`${file}.d`)
  const dropIn = dropInText(service, version, service.name === 'server' ? ['/srv', '-/srv/a b'] : [])
  writeFileSync(`${file}.d/rsm.conf`, dropIn ?? '')
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
  return { file, status, said: stderr + stdout }
}

for (const [what, service, most] of [
  ['server', server, 3],
  ['agent', agent, 9.7],
  ["user's agent", mine, null],
] as readonly (readonly [string, Service, number | null])[])
  whereThere(`systemd accepts the unit of the ${what}, and its exposure is ${most ?? 'not rated'}`, (t) => {
    const { file, status, said } = verified(t, service, unitText(service, ['/bin/true']))
    t.is(said, '')
    t.is(status, 0)
    if (most === null) return
    const words = ['security', '--offline=yes', '--no-pager', file]
    const judged = spawnSync('systemd-analyze', words, { encoding: 'utf8' })
    const level = Number(/exposure level for \S+ (\d+\.\d)/.exec(judged.stdout)?.[1])
    t.true(level <= most, judged.stdout.slice(-200))
  })

for (const service of [server, agent])
  whereThere(`systemd accepts the ${service.unit} of the packages`, (t) => {
    // Without the program, which this machine does not have there.
    const text = readFileSync(`packaging/units/${service.unit}.service`, 'utf8')
    t.regex(text, /^ExecStart=\/usr\/bin\/rsm /m)
    const { status, said } = verified(t, service, text.replace('/usr/bin/rsm', '/bin/true'))
    t.is(said, '')
    t.is(status, 0)
  })
