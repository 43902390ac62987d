import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { type Service, systemService, userService } from '../../src/install/service.ts'
import { unitText } from '../../src/install/unit.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const server = systemService('server')
const agent = systemService('agent')
const mine = userService('agent', (kind) => `/home/ann/.${kind.toLowerCase()}`)
const lineOf = (text: string, key: string) => text.split('\n').filter((line) => line.startsWith(`${key}=`))

test('a unit starts the program that is installed, with its own settings and data', (t) => {
  const text = unitText(agent, ['/opt/rsm/bin/rsm'], 255)
  t.deepEqual(lineOf(text, 'ExecStart'), ['ExecStart=/opt/rsm/bin/rsm agent run'])
  t.deepEqual(lineOf(text, 'EnvironmentFile'), ['EnvironmentFile=-/etc/rsm/agent.env'])
  t.deepEqual(lineOf(text, 'StateDirectory'), ['StateDirectory=rsm/agent'])
  t.deepEqual(lineOf(text, 'KillMode'), ['KillMode=process'])
  const odd = unitText(server, ['/opt/a b/50%/$x/node', '/opt/"q"'], 255, ['/srv/rsm'])
  t.deepEqual(lineOf(odd, 'ExecStart'), ['ExecStart="/opt/a b/50%%/$$x/node" "/opt/\\"q\\"" server start'])
  t.deepEqual(lineOf(odd, 'ReadWritePaths'), ['ReadWritePaths=/srv/rsm'])
})

test('DelegateSubgroup is left to a systemd that knows it', (t) => {
  t.is(lineOf(unitText(agent, ['/usr/bin/rsm'], 254), 'DelegateSubgroup').length, 1)
  t.is(lineOf(unitText(agent, ['/usr/bin/rsm'], 253), 'DelegateSubgroup').length, 0)
})

test("a user's unit needs nothing of the system, and starts with the user", (t) => {
  const text = unitText(mine, ['/home/ann/.local/bin/rsm'], 255)
  t.deepEqual(lineOf(text, 'WantedBy'), ['WantedBy=default.target'])
  t.deepEqual(lineOf(text, 'EnvironmentFile'), ['EnvironmentFile=-/home/ann/.config/rsm/agent.env'])
  t.deepEqual(lineOf(text, 'Environment'), ['Environment=RSM_AGENT_DATA_DIR=/home/ann/.state/rsm/agent'])
  t.deepEqual(lineOf(text, 'StateDirectory'), [])
})

const version = Number(
  /^systemd (\d+)/.exec(spawnSync('systemd-analyze', ['--version']).stdout?.toString() ?? '')?.[1],
)
// Skipped (2026-11-22) where systemd-analyze is missing: nothing else knows what a unit may hold.
const whereThere = Number.isNaN(version) ? test.skip : test

for (const [what, service, most] of [
  ['server', server, 3],
  ['agent', agent, 9.7],
  ["user's agent", mine, null],
] as readonly (readonly [string, Service, number | null])[])
  whereThere(
    `systemd takes the unit of the ${what} as it is, and its exposure is ${most ?? 'not judged'}`,
    (t) => {
      const file = join(temporaryDirectory(t), `${service.unit}.service`)
      writeFileSync(file, unitText(service, ['/bin/true'], version))
      const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
      t.is(verified.stderr + verified.stdout, '')
      t.is(verified.status, 0)
      if (most === null) return
      const words = ['security', '--offline=yes', '--no-pager', file]
      const judged = spawnSync('systemd-analyze', words, { encoding: 'utf8' })
      const level = Number(/exposure level for \S+ (\d+\.\d)/.exec(judged.stdout)?.[1])
      t.true(level <= most, judged.stdout.slice(-200))
    },
  )
