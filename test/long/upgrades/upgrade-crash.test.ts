import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { finished } from '../../helpers/clients/tasks.ts'
import { makeBuild, type OwnBuild } from '../../helpers/releases/build.ts'
import { newReleaseKey } from '../../helpers/releases/release-key.ts'
import { release, upgradableAgent } from '../../helpers/releases/upgradable.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const key = newReleaseKey()
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function isUpgradeOf(pid: number, taskId: string): boolean {
  try {
    const isUpgrade = readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('rsm-agent-upgr')
    return isUpgrade && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`RSM_TASK_ID=${taskId}`)
  } catch {
    return false
  }
}

/** Files that a killed upgrade has left behind, possibly damaged since. */
function left(releases: string, { version, executable }: OwnBuild) {
  const installed = { version, sha256: sha256(executable) }
  const trial = { taskId: 'task', starts: 0, process: null }
  const state = { base: '0.1.0', current: installed, former: null, trial, undone: null }
  const write = (name: string, text: string) => {
    mkdirSync(join(releases, version), { recursive: true, mode: 0o700 })
    writeFileSync(join(releases, name), text, { mode: 0o700 })
  }
  return {
    half: () => write(`${version}/download`, executable.slice(0, 40)),
    whole: () => write(`${version}/rsm`, executable),
    state: (more: object = {}) => write('state.json', JSON.stringify({ ...state, ...more })),
    link: (name = 'current') => symlinkSync(`${version}/rsm`, join(releases, name)),
    write,
  }
}
type Left = ReturnType<typeof left>

/** Files in place, and the version that starts. */
const cases: readonly (readonly [what: string, make: (left: Left) => void, version: string])[] = [
  ['half a download', (l) => l.half(), '0.1.0'],
  ['a whole release without a link to it', (l) => l.whole(), '0.1.0'],
  [
    'the state of the swap without its link',
    (l) => {
      l.whole()
      l.state()
      l.link('current.1-aa.tmp')
    },
    '0.1.0',
  ],
  [
    'the swap, before a restart of the agent',
    (l) => {
      l.whole()
      l.state()
      l.link()
    },
    '0.2.0',
  ],
  [
    'a release that is damaged on disk',
    (l) => {
      l.write('0.2.0/rsm', '#!/bin/sh\necho hello\n')
      l.state()
      l.link()
    },
    '0.1.0',
  ],
  [
    'a release whose file is gone',
    (l) => {
      l.state({ trial: null })
      l.link()
    },
    '0.1.0',
  ],
  [
    'a torn state',
    (l) => {
      l.whole()
      l.write('state.json', '{"base":"0.1')
      l.link()
    },
    '0.1.0',
  ],
  [
    'another rsm installed since',
    (l) => {
      l.whole()
      l.state({ base: '0.0.9', trial: null })
      l.link()
    },
    '0.1.0',
  ],
  [
    'the removed link of a rollback without its state',
    (l) => {
      l.whole()
      l.state({ trial: { taskId: 'task', starts: 3, process: null } })
    },
    '0.1.0',
  ],
]

test('a host starts one of the two versions after a killed upgrade, whatever it has left behind', async (t) => {
  const server = await startTestServer(t)
  const second = makeBuild(t, { version: '0.2.0', key })
  const agent = await upgradableAgent(t, server, makeBuild(t, { version: '0.1.0', key }), 'web1')
  const releases = join(agent.dataDir, 'releases')
  for (const [what, make, version] of cases) {
    await agent.kill()
    rmSync(releases, { recursive: true, force: true })
    mkdirSync(releases, { mode: 0o700 })
    make(left(releases, second))
    agent.start()
    await until(`${what}: ${version} is linked`, () => {
      const state = agent.state()
      return state?.linked === true && state.version === version
    })
    t.pass(what)
  }
  await agent.kill()
  chmodSync(join(releases), 0o777)
  agent.start()
  await until(
    'the installed version runs if anyone may write to the directory of releases',
    () => agent.state()?.linked === true,
  )
  t.is(agent.state()?.version, '0.1.0')
})

test('an upgrade whose process is killed after the swap ends with the new version, and the next one works', async (t) => {
  const server = await startTestServer(t)
  const agent = await upgradableAgent(t, server, makeBuild(t, { version: '0.1.0', key }), 'web1')
  // A slow start leaves time for the kill.
  await release(
    server,
    key,
    makeBuild(t, { version: '0.2.0', key, before: 'case $2 in run) sleep 3 ;; esac\n' }),
  )
  const start = async () =>
    (await server.data('POST', '/api/tasks', { upgrade: {}, target: { selector: 'web1' } })).taskId as string
  const taskId = await start()
  const directory = join(agent.dataDir, 'executions', taskId)
  await until('it has swapped', () => existsSync(join(directory, 'swapped')) && agent.state() === null)
  const upgrading = readdirSync('/proc')
    .map(Number)
    .filter((pid) => isUpgradeOf(pid, taskId))
  t.is(upgrading.length, 1)
  process.kill(upgrading[0] ?? 0, 'SIGKILL')
  const killed = await finished(server, taskId)
  t.is(killed.results[0]?.status, 'FAILED', JSON.stringify(killed.results[0]))
  t.is(killed.results[0]?.signal, 'SIGKILL')
  await until(
    'the new version is linked',
    () => agent.state()?.version === '0.2.0' && agent.state()?.linked === true,
  )
  await release(server, key, makeBuild(t, { version: '0.3.0', key }))
  t.is((await finished(server, await start())).status, 'SUCCESS')
  t.is(agent.state()?.version, '0.3.0')
  t.deepEqual(readdirSync(join(agent.dataDir, 'releases')).sort(), [
    '0.2.0',
    '0.3.0',
    'current',
    'lock',
    'state.json',
  ])
})
