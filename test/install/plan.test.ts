import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { applyPlan, planOf, replaces, showPlan, untilUp, type Wish } from '../../src/install/plan.ts'
import { holderOf, needPort } from '../../src/install/port-holder.ts'
import { findInstalled, removeInstalled } from '../../src/install/remove.ts'
import { systemService } from '../../src/install/service.ts'
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
const modeOf = (path: string) => statSync(path).mode & 0o777

test('an installation writes its files once; the next one keeps settings, changes what is given, and says what', (t) => {
  const service = systemService('agent', temporaryDirectory(t))
  const wish: Wish = {
    service,
    settings: new Map([['RSM_AGENT_URL', 'https://rsm.example.org']]),
    token: 'rsm_enr_x',
    prefix: undefined,
    systemd: calls(),
  }
  const first = planOf(wish)
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
  t.false(applyPlan(planOf(wish)), 'nothing is left to do')

  const settings = new Map([['RSM_AGENT_RUN_AS', 'deploy']])
  const second = planOf({ ...wish, settings, token: undefined })
  t.true(replaces(second))
  t.is(showPlan(second, 'would'), `would write ${service.envFile}\n  + RSM_AGENT_RUN_AS=deploy`)
  applyPlan(second)
  t.is(
    readFileSync(service.envFile, 'utf8'),
    'RSM_AGENT_URL=https://rsm.example.org\nRSM_AGENT_RUN_AS=deploy\n',
  )
  chmodSync(service.envFile, 0o644)
  applyPlan(planOf({ ...wish, settings: new Map(), token: undefined }))
  t.is(modeOf(service.envFile), 0o600, 'a file that others may read is closed again')
})

test('a place that can’t be written to is named, with the way out', (t) => {
  const root = temporaryDirectory(t)
  writeFileSync(join(root, 'etc'), 'a file')
  const service = systemService('agent', root)
  const settings = new Map([['RSM_AGENT_URL', 'https://x']])
  const plan = planOf({ service, settings, token: undefined, prefix: undefined, systemd: null })
  t.throws(() => applyPlan(plan), { code: 'unavailable', message: /^cannot write .*\/etc\/rsm: / })
})

test('an uninstallation removes what an installation made, keeps data where it is told to, and what others put there', async (t) => {
  const root = temporaryDirectory(t)
  const service = systemService('agent', root)
  const settings = new Map([['RSM_AGENT_URL', 'https://x']])
  const install = () => {
    applyPlan(planOf({ service, settings, token: 'rsm_enr_x', prefix: undefined, systemd: null }))
    mkdirSync(service.dataDir, { recursive: true })
  }
  install()
  const systemd = calls()
  await removeInstalled(service, systemd, findInstalled(service, true))
  t.deepEqual(systemd.told, ['disable --now --quiet rsm-agent', 'daemon-reload'])
  t.deepEqual(findInstalled(service, false).paths, [service.dataDir])
  t.is(statSync(service.configDir, { throwIfNoEntry: false }), undefined)
  install()
  const other = join(service.configDir, 'server.env')
  writeFileSync(other, '')
  await removeInstalled(service, null, findInstalled(service, false))
  t.deepEqual(findInstalled(service, false).paths, [])
  t.true(statSync(other).isFile())
  t.is(statSync(join(root, 'var/lib/rsm'), { throwIfNoEntry: false }), undefined)
})

test('a service that does not stay up, or is silent for too long, is told with its own last words', async (t) => {
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

test('a port in use is named with who listens there', async (t) => {
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
