import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { RsmError } from '../../src/core/errors.ts'
import { openDataDirectory } from '../../src/disk/data-directory.ts'
import {
  applyPlan,
  type InstallRequest,
  planOf,
  replaces,
  showPlan,
  untilUp,
} from '../../src/install/plan.ts'
import { holderOf, needPort } from '../../src/install/port-holder.ts'
import { findInstalled, removeInstalled } from '../../src/install/remove.ts'
import { type Settings, systemService, userService } from '../../src/install/service.ts'
import type { Systemd } from '../../src/install/systemd.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const calls = (answers: Record<string, string> = {}): Systemd & { readonly told: string[] } => {
  const told: string[] = []
  return {
    version: 252,
    told,
    async ctl(...words) {
      told.push(words.join(' '))
      return answers[words[0] ?? ''] ?? ''
    },
    log: async () => 'first\nrsm: the port is taken\n     stop what listens there',
  }
}
const fromNpm = { command: ['/usr/bin/node', '/usr/lib/node_modules/rsm/bin/run.js'], from: null }
const modeOf = (path: string) => statSync(path).mode & 0o777

test('an installation writes its files once, and the next one changes and shows only given settings', (t) => {
  const service = systemService('agent', temporaryDirectory(t))
  const request: InstallRequest = {
    service,
    settings: new Map([['RSM_AGENT_URL', 'https://rsm.example.org']]),
    token: 'rsm_enr_x',
    program: fromNpm,
    systemd: calls(),
  }
  const first = planOf(request)
  t.false(replaces(first))
  t.regex(
    showPlan(first, 'would'),
    /would write .*agent\.env\n {2}\+ RSM_AGENT_URL=https:\/\/rsm\.example\.org\n/,
  )
  t.notRegex(showPlan(first, 'would'), /rsm_enr_x/)
  t.true(applyPlan(first))
  t.is(readFileSync(service.tokenFile, 'utf8'), 'rsm_enr_x\n')
  for (const path of [service.envFile, service.tokenFile]) t.is(modeOf(path), 0o600)
  t.is(modeOf(service.unitFile), 0o644)
  t.false(applyPlan(planOf(request)), 'nothing is left to do')

  const settings = new Map([['RSM_AGENT_RUN_AS', 'deploy']])
  const second = planOf({ ...request, settings, token: undefined })
  t.true(replaces(second))
  t.is(showPlan(second, 'would'), `would write ${service.envFile}\n  + RSM_AGENT_RUN_AS=deploy`)
  applyPlan(second)
  t.is(
    readFileSync(service.envFile, 'utf8'),
    'RSM_AGENT_URL=https://rsm.example.org\nRSM_AGENT_RUN_AS=deploy\n',
  )
  chmodSync(service.envFile, 0o644)
  applyPlan(planOf({ ...request, settings: new Map(), token: undefined }))
  t.is(modeOf(service.envFile), 0o600, 'a file that others may read becomes private again')
})

test('without systemd the printed line starts the service with its data directory, given now or before', (t) => {
  const root = temporaryDirectory(t)
  for (const [name, verb, variable] of [
    ['agent', 'agent run', 'RSM_AGENT_DATA_DIR'],
    ['server', 'server start', 'RSM_DATA_DIR'],
  ] as const) {
    const service = systemService(name, root)
    const command = fromNpm.command.join(' ')
    const plan = (settings: Settings) =>
      planOf({ service, settings, token: undefined, program: fromNpm, systemd: null })
    const line = (dataDir: string) =>
      `set -a; . ${root}/etc/rsm/${name}.env; exec ${command} ${verb} --data-dir ${dataDir}`
    t.is(plan(new Map()).line, line(`${root}/var/lib/rsm/${name}`))
    const given = plan(new Map([[variable, '/srv/my rsm']]))
    t.is(given.line, line('"/srv/my rsm"'))
    applyPlan(given)
    t.is(plan(new Map()).line, line('"/srv/my rsm"'))
  }
})

test('a packaged unit stays unchanged, and settings of the host are in a drop-in that can be removed', async (t) => {
  const service = systemService('server', temporaryDirectory(t))
  mkdirSync(dirname(service.packagedUnitFile), { recursive: true })
  writeFileSync(service.packagedUnitFile, '')
  const dataDir = join(temporaryDirectory(t), 'srv')
  const request: InstallRequest = {
    service,
    settings: new Map([['RSM_DATA_DIR', dataDir]]),
    token: undefined,
    program: { command: ['/usr/bin/rsm'], from: null },
    systemd: calls(),
  }
  const install = (writable: readonly string[]) => applyPlan(planOf({ ...request, writable }))
  install([])
  t.false(existsSync(service.unitFile))
  t.false(existsSync(service.dropInFile), 'there is nothing to add')
  install([dataDir])
  t.is(readFileSync(service.dropInFile, 'utf8'), `[Service]\nReadWritePaths=${dataDir}\n`)
  t.is(modeOf(service.dropInFile), 0o644)
  t.false(install([dataDir]), 'nothing is left to do')
  install([])
  t.is(readFileSync(service.dropInFile, 'utf8'), '', 'earlier additions are removed')
  install([dataDir])
  const own = join(dirname(service.dropInFile), 'override.conf')
  writeFileSync(own, '')
  await removeInstalled(service, null, findInstalled(service, true))
  t.false(existsSync(service.dropInFile))
  t.true(existsSync(own))
  rmSync(own)
  install([dataDir])
  await removeInstalled(service, null, findInstalled(service, true))
  t.false(existsSync(dirname(service.dropInFile)))
  t.true(existsSync(service.packagedUnitFile))
})

test('an installation that cannot write names the path', (t) => {
  const root = temporaryDirectory(t)
  writeFileSync(join(root, 'etc'), 'a file')
  const service = systemService('agent', root)
  const settings = new Map([['RSM_AGENT_URL', 'https://x']])
  const plan = planOf({ service, settings, token: undefined, program: fromNpm, systemd: null })
  t.throws(() => applyPlan(plan), { code: 'unavailable', message: /^cannot write .*\/etc\/rsm: / })
})

test('an uninstallation removes files of the installation, data only on request, and never other files', async (t) => {
  const root = temporaryDirectory(t)
  const service = systemService('agent', root)
  const settings = new Map([['RSM_AGENT_URL', 'https://x']])
  const install = () => {
    applyPlan(planOf({ service, settings, token: 'rsm_enr_x', program: fromNpm, systemd: null }))
    mkdirSync(service.dataDir, { recursive: true })
  }
  install()
  const systemd = calls()
  await removeInstalled(service, systemd, findInstalled(service, false))
  t.deepEqual(systemd.told, [
    'show -p MainPID --value rsm-agent',
    'disable --now --quiet rsm-agent',
    'daemon-reload',
  ])
  t.deepEqual(findInstalled(service, false).paths, [])
  t.deepEqual(findInstalled(service, true).paths, [service.dataDir])
  t.is(statSync(service.configDir, { throwIfNoEntry: false }), undefined)
  install()
  const other = join(service.configDir, 'server.env')
  writeFileSync(other, '')
  writeFileSync(join(service.dataDir, 'identity.json'), '')
  await removeInstalled(service, null, findInstalled(service, true))
  t.deepEqual(findInstalled(service, true).paths, [])
  t.true(statSync(other).isFile())
  t.is(statSync(join(root, 'var/lib/rsm'), { throwIfNoEntry: false }), undefined)
})

test('an uninstallation for a user without systemd finds the program at any path and removes it', async (t) => {
  const home = temporaryDirectory(t)
  const service = userService('agent', (kind) => join(home, kind))
  const path = join(home, 'opt/bin/rsm')
  const program = { command: [path], from: '/bin/true' }
  applyPlan(planOf({ service, settings: new Map(), token: undefined, program, systemd: null }))
  t.true(existsSync(path))
  const found = findInstalled(service, false)
  t.true(found.paths.includes(path))
  await removeInstalled(service, null, found)
  t.deepEqual(
    readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory()),
    [],
  )
})

/** A process that holds a data directory like a service. */
async function holderOfData(t: ExecutionContext, dataDir: string) {
  const module = new URL('../../src/disk/data-directory.js', import.meta.url).href
  const fixture = `import { openDataDirectory } from ${JSON.stringify(module)}
    globalThis.held = await openDataDirectory(${JSON.stringify(dataDir)})
    console.log('up')
    setInterval(() => {}, 1e6)`
  const running = spawn(process.execPath, ['--input-type=module', '-e', fixture])
  t.teardown(() => running.kill())
  await once(running.stdout, 'data')
  return running
}

test('an uninstallation removes nothing while the service runs, and names it, even if its lock is lost', async (t) => {
  const service = systemService('agent', temporaryDirectory(t))
  const dataDir = join(temporaryDirectory(t), 'elsewhere')
  const settings = new Map([['RSM_AGENT_DATA_DIR', dataDir]])
  applyPlan(planOf({ service, settings, token: undefined, program: fromNpm, systemd: null }))
  const running = await holderOfData(t, dataDir)
  const lock = join(dataDir, 'lock')
  const losses = [
    () => {},
    () => rmSync(lock),
    () => mkdirSync(lock),
    () => rmSync(dataDir, { recursive: true }),
    () => mkdirSync(dataDir),
  ]
  for (const lose of losses) {
    lose()
    for (const removeData of [true, false]) {
      const systemd = calls()
      const found = findInstalled(service, removeData)
      const error = await t.throwsAsync(removeInstalled(service, systemd, found), { code: 'conflict' })
      t.regex(error.message, new RegExp(`^rsm-agent is in use by \\S+ \\(pid ${running.pid}\\): nothing`))
      t.regex((error as RsmError).hint ?? '', new RegExp(`^stop it first: kill ${running.pid}; `))
      for (const path of found.paths) t.true(existsSync(path), path)
      t.deepEqual(systemd.told, ['show -p MainPID --value rsm-agent'], 'the service stays enabled')
    }
  }
  running.kill()
  await once(running, 'exit')
  await removeInstalled(service, null, findInstalled(service, false))
  t.false(existsSync(service.envFile))
  t.true(existsSync(dataDir))
})

test('an uninstallation removes nothing while another process holds the lock, or if it cannot be read', async (t) => {
  const service = systemService('agent', temporaryDirectory(t))
  applyPlan(planOf({ service, settings: new Map(), token: undefined, program: fromNpm, systemd: null }))
  const held = await openDataDirectory(service.dataDir)
  const refused = async (message: RegExp) => {
    for (const removeData of [true, false]) {
      const found = findInstalled(service, removeData)
      await t.throwsAsync(removeInstalled(service, null, found), { code: 'conflict', message })
      for (const path of found.paths) t.true(existsSync(path), path)
    }
  }
  await refused(
    new RegExp(`^rsm-agent still runs: data directory .*/agent is in use by pid ${process.pid} since`),
  )
  await held.release()
  const lock = join(service.dataDir, 'lock')
  rmSync(lock)
  mkdirSync(lock)
  await refused(/^cannot tell whether rsm-agent still runs: EISDIR/)
  rmdirSync(lock)
  symlinkSync(service.envFile, lock)
  const settings = readFileSync(service.envFile, 'utf8')
  await refused(/^cannot tell whether rsm-agent still runs: ELOOP/)
  t.is(readFileSync(service.envFile, 'utf8'), settings, 'nothing is written through the symlink')
})

test('an uninstallation keeps the program while an agent with other data runs from it', async (t) => {
  const home = temporaryDirectory(t)
  const service = userService('agent', (kind) => join(home, kind))
  const path = join(home, 'opt/bin/rsm')
  const program = { command: [path], from: '/bin/bash' }
  applyPlan(planOf({ service, settings: new Map(), token: undefined, program, systemd: null }))
  writeFileSync(join(home, 'agent'), 'echo up; read -r _')
  // An agent sets a process title, which replaces its arguments.
  for (const argv0 of [path, 'rsm agent run', 'rsm --utc -q server start']) {
    const running = spawn(path, ['agent', 'run'], { cwd: home, argv0 })
    t.teardown(() => running.kill())
    await once(running.stdout, 'data')
    await t.throwsAsync(removeInstalled(service, null, findInstalled(service, false)), {
      message: `rsm-agent is in use by rsm (pid ${running.pid}): nothing was removed`,
    })
    running.kill()
    await once(running, 'exit')
  }
  t.true(existsSync(path))
  t.true(existsSync(service.unitFile))
  // The terminals of an agent end with it.
  const terminals = spawn(path, ['agent'], { cwd: home, argv0: 'rsm agent terminals' })
  t.teardown(() => terminals.kill())
  await once(terminals.stdout, 'data')
  await removeInstalled(service, null, findInstalled(service, false))
  t.false(existsSync(path))
})

test('an uninstallation stops an agent whose release runs as a child of systemd’s main process', async (t) => {
  const service = systemService('agent', temporaryDirectory(t))
  applyPlan(planOf({ service, settings: new Map(), token: undefined, program: fromNpm, systemd: null }))
  const release = await holderOfData(t, service.dataDir)
  const ctl = async (word: string) => {
    if (word !== 'disable') return String(process.pid)
    release.kill()
    await once(release, 'exit')
    return ''
  }
  await removeInstalled(service, { ...calls(), ctl }, findInstalled(service, true))
  t.false(existsSync(service.unitFile))
  t.false(existsSync(service.dataDir))
})

test('an error names the last log line of a service that does not stay up, and one that does not answer', async (t) => {
  const service = systemService('server')
  const wait = (restarts: string, within: number) =>
    untilUp(
      { service, systemd: calls({ show: restarts }), within },
      async () => null,
      () => 'it does not answer',
    )
  await t.throwsAsync(wait('2', 60_000), {
    code: 'unavailable',
    message: 'rsm-server does not stay up: rsm: the port is taken',
  })
  await t.throwsAsync(wait('0', 0), {
    message: /^rsm-server was started, but it does not answer after 0 s: /,
  })
})

test('an error about a port in use names the process that listens there', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const comm = readFileSync('/proc/self/comm', 'utf8').trim()
  t.is(holderOf(port), `${comm} (pid ${process.pid})`)
  await t.throwsAsync(needPort('127.0.0.1', port), {
    message: `port ${port} of 127.0.0.1 is in use by ${comm} (pid ${process.pid})`,
  })
  await new Promise((resolve) => server.close(resolve))
  await t.notThrowsAsync(needPort('127.0.0.1', port))
  t.is(holderOf(port), null)
})
