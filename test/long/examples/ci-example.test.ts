import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { execa } from 'execa'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const agentProgram = fileURLToPath(new URL('../../fixtures/agent-process.js', import.meta.url))
const hosts = ['web1', 'web2', 'web3', 'web4']
const box = (srv: string) => [
  '--die-with-parent',
  '--dev-bind',
  '/',
  '/',
  '--tmpfs',
  '/srv',
  '--bind',
  srv,
  '/srv/shop',
]

// Skipped if bubblewrap cannot give each agent its own /srv, as on a machine of its own.
const canBox = spawnSync('bwrap', [...box('/'), 'true']).status === 0
const whereBoxed = canBox && spawnSync('tar', ['--version']).status === 0 ? test : test.skip

/** Creates `shop-VERSION.tar.gz` in `directory`, with a health check that exits with `health`. */
async function release(directory: string, version: string, health: number): Promise<void> {
  const tree = join(directory, version)
  await mkdir(tree)
  await writeFile(join(tree, 'health'), `#!/bin/sh\necho "asked ${version}"\nexit ${health}\n`)
  await chmod(join(tree, 'health'), 0o755)
  await execa('tar', ['-czf', join(directory, `shop-${version}.tar.gz`), '-C', tree, '.'])
}

/** Starts agents with the tag role=web, each a process with its own /srv/shop; returns these directories by host. */
async function startWebHosts(t: ExecutionContext, server: TestServer): Promise<Map<string, string>> {
  const made = { maxUses: hosts.length, tags: { role: 'web' } }
  const { token } = await server.data('POST', '/api/enrollment-tokens', made)
  const shops = new Map<string, string>()
  for (const hostname of hosts) {
    const home = await temporaryDirectory(t)
    const shop = join(home, 'shop')
    await mkdir(shop)
    shops.set(hostname, shop)
    const { log: _, ...options } = agentOptions(server, join(home, 'data'))
    const agent = execa('bwrap', [...box(shop), process.execPath, agentProgram], {
      env: { AGENT_OPTIONS: JSON.stringify({ ...options, hostname, enrollToken: token }) },
      stdio: 'ignore',
      reject: false,
    })
    t.teardown(async () => {
      agent.kill('SIGKILL')
      await agent
    })
  }
  await until('the agents are linked', async () => {
    const { content } = await server.data('GET', '/api/hosts')
    return (
      content.filter((host: { agent: { connected: boolean } | null }) => host.agent?.connected).length === 4
    )
  })
  return shops
}

whereBoxed(
  'examples/ci stops a bad version at its canary with exit 1 and a report, and rolls out a good one',
  async (t) => {
    const server = await startTestServer(t)
    const shops = await startWebHosts(t, server)
    const work = await temporaryDirectory(t)
    await symlink(resolve('bin/run.js'), join(work, 'rsm'))
    await writeFile(join(work, 'token'), server.token, { mode: 0o600 })
    for (const [version, health] of [
      ['1.0', 0],
      ['2.0', 3],
      ['2.1', 0],
    ] as const)
      await release(work, version, health)
    const report = join(work, 'report.xml')

    const env = {
      PATH: `${work}:${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: work,
      RSM_URL: server.url,
      RSM_TOKEN_FILE: join(work, 'token'),
    }
    const deploy = async (version: string, more: Record<string, string> = {}) => {
      const ran = await execa('sh', [resolve('examples/ci/deploy.sh')], {
        extendEnv: false,
        cwd: work,
        env: {
          ...env,
          VERSION: version,
          SOURCE: work,
          RETRIES: '1',
          ...more,
        },
        reject: false,
      })
      const xml = await readFile(report, 'utf8')
      const wellFormed = spawnSync('xmllint', ['--noout', report], { encoding: 'utf8' })
      if (!wellFormed.error) t.is(wellFormed.status, 0, wellFormed.stderr)
      const cases = xml.split('<testcase ').slice(1)
      const { exitCode, stdout, stderr } = ran
      return { exitCode, stdout, stderr, xml, cases, said: `${stdout}\n${stderr}` }
    }
    const inPlace = () => Promise.all(hosts.map((host) => readlink(join(shops.get(host) ?? '', 'current'))))
    const kept = () => Promise.all(hosts.map((host) => readdir(join(shops.get(host) ?? '', 'versions'))))

    const first = await deploy('1.0')
    t.is(first.exitCode, 0, first.said)
    t.deepEqual(await inPlace(), Array(4).fill('versions/1.0'))

    const bad = await deploy('2.0', { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: join(work, 'summary.md') })
    t.is(bad.exitCode, 1, bad.said)
    t.deepEqual(await inPlace(), Array(4).fill('versions/1.0'))
    for (const versions of await kept()) t.deepEqual(versions, ['1.0'])
    t.regex(bad.xml, /tests="4" failures="1" errors="0"[^>]* skipped="3"/)
    t.regex(
      bad.cases[0] ?? '',
      /name="web1"[^]*<failure message="FAILED, exit 3: verification failed: exit code 3[^"]*; rolled back"[^]*asked 2\.0[^]*back to versions\/1\.0/,
    )
    t.regex(bad.cases[0] ?? '', /name="verify" value="FAILED, exit 3, attempts 2"/)
    for (const skipped of bad.cases.slice(1)) t.regex(skipped, /name="web[2-4]"[^]*<skipped/)
    t.regex(bad.stdout, /^::error/m)
    t.regex(
      bad.stderr,
      /^rsm: web1: FAILED, exit 3: verification failed: exit code 3 \(the last of 2 attempts\); rolled back$/m,
    )
    t.regex(bad.stderr, /^rsm: web\[2-4\]: SKIPPED/m)
    t.regex(await readFile(join(work, 'summary.md'), 'utf8'), /web1/)

    const good = await deploy('2.1', { DEPLOY_ID: 'job-7' })
    t.is(good.exitCode, 0, good.said)
    t.deepEqual(await inPlace(), Array(4).fill('versions/2.1'))
    t.false(/<(failure|error|skipped)\b/.test(good.xml))
    t.is(good.cases.length, 4)
    // Repeating the step, as after a runner that lost its connection, deploys nothing.
    const tasks = async () => (await server.data('GET', '/api/tasks')).totalElements
    const before = await tasks()
    t.is((await deploy('2.1', { DEPLOY_ID: 'job-7' })).exitCode, 0)
    t.is(await tasks(), before)

    const plan = await execa('sh', [resolve('examples/rolling-restart.sh'), 'nginx', '@role:web', '--plan'], {
      extendEnv: false,
      env,
      reject: false,
    })
    t.is(plan.exitCode, 0, plan.stderr)
    t.regex(plan.stdout, /^batch 1 \(1\): web1\n[^]*\nSERVICE=nginx\n+#!\/bin\/bash -eu\n/)

    const [task] = (await server.data('GET', '/api/tasks?size=1')).content
    t.like(task, { strategy: 'ROLLING', batchSize: [1, '50%'], scriptName: 'put-version', timeout: 120 })
    const { results } = await server.data('GET', `/api/tasks/${task.taskId}`)
    const at = (index: number, key: 'startedAt' | 'completedAt') => Date.parse(results[index][key])
    t.true(at(1, 'startedAt') >= at(0, 'completedAt'), 'the canary was alone')
    t.true(
      at(3, 'startedAt') >= Math.max(at(1, 'completedAt'), at(2, 'completedAt')),
      'then half of them, then the rest',
    )
  },
)
