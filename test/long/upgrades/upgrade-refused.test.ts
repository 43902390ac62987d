import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { packageAdvice } from '../../../src/agent/upgrade/upgrade.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { makeBuild } from '../../helpers/releases/build.ts'
import { newReleaseKey, ownArch, signedBy } from '../../helpers/releases/release-key.ts'
import { release, upgradableAgent } from '../../helpers/releases/upgradable.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const key = newReleaseKey()
const body = (hostname: string, upgrade: object = {}) => ({ upgrade, target: { selector: hostname } })
const start = async (server: TestServer, hostname: string, upgrade?: object): Promise<string> =>
  (await server.data('POST', '/api/tasks', body(hostname, upgrade))).taskId
const result = async (server: TestServer, hostname: string, upgrade?: object) => {
  const { results } = await finished(server, await start(server, hostname, upgrade))
  return `${results[0]?.status} ${results[0]?.error}`
}

test('an agent refuses a release without a signature of its key, and a downgrade without --allow-downgrade', async (t) => {
  const server = await startTestServer(t)
  const build = makeBuild(t, { version: '0.3.0', key })
  const older = makeBuild(t, { version: '0.2.0', key })
  const agent = await upgradableAgent(t, server, build, 'web1', ['--allow-unsigned'])
  const keyless = await upgradableAgent(t, server, makeBuild(t, { version: '0.1.0' }), 'web2')
  const newer = makeBuild(t, { version: '0.4.0', key: newReleaseKey() })
  await release(server, newReleaseKey(), newer)
  t.regex(await result(server, 'web1'), /^FAILED rsm 0\.4\.0 is not signed by the release key of rsm 0\.3\.0/)
  t.regex(
    await result(server, 'web2'),
    /^FAILED rsm 0\.1\.0 on this host cannot be upgraded: it was built without/,
  )
  // A release signed for another version than offered, and one that reports another version.
  await handOut(server, older.executable, `rsm-linux-${ownArch}`, {
    ...signedBy(key, '0.2.0', older.executable),
    version: '0.9.0',
  })
  t.regex(await result(server, 'web1'), /^FAILED rsm 0\.9\.0 is not signed/)
  await handOut(server, older.executable, `rsm-linux-${ownArch}`, signedBy(key, '0.9.0', older.executable))
  t.regex(
    await result(server, 'web1'),
    /^FAILED the executable signed as rsm 0\.9\.0 calls itself "rsm 0\.2\.0 works here/,
  )
  await release(server, key, older)
  t.regex(await result(server, 'web1'), /^FAILED 0\.2\.0 is a downgrade from 0\.3\.0: add --allow-downgrade/)
  t.is(agent.current(), null)
  t.is(await result(server, 'web1', { allowDowngrade: true }), 'SUCCESS null')
  t.is(agent.state()?.version, '0.2.0')
  t.is(keyless.state()?.version, '0.1.0')
})

test('only an ADMIN starts and retries an upgrade; a missing release and a script option are a 400', async (t) => {
  const server = await startTestServer(t)
  await server.enroll('web1')
  await server.data('POST', '/api/users', {
    username: 'olga',
    password: 'a password of hers',
    role: 'OPERATOR',
  })
  const { token } = await server.data('POST', '/api/auth/login', {
    username: 'olga',
    password: 'a password of hers',
  })
  const asOlga = { authorization: `Bearer ${token}` }
  const none = await server.api('POST', '/api/tasks', body('web1'))
  t.is(none.status, 400)
  t.regex(
    none.body.errors?.[0]?.message ?? '',
    /this server has no signed release; on its machine: rsm server/,
  )
  await release(server, key, { version: '0.2.0', program: '', executable: '#!/bin/sh\n' })
  const other = await server.api('POST', '/api/tasks', body('web1', { version: '0.7.0' }))
  t.regex(other.body.errors?.[0]?.message ?? '', /has signed releases of 0\.2\.0 only/)
  const wrong = await server.api('POST', '/api/tasks', { ...body('web1'), runAs: 'root', params: {} })
  t.deepEqual(
    wrong.body.errors?.map(({ field }) => field),
    ['params', 'runAs'],
  )
  const both = await server.api('POST', '/api/tasks', { ...body('web1'), script: { content: 'true' } })
  t.regex(
    both.body.errors?.[0]?.message ?? '',
    /exactly one of scriptId, script, copy, fetch, install and upgrade/,
  )
  const refused = await server.api('POST', '/api/tasks', body('web1'), asOlga)
  t.is(refused.status, 403)
  t.regex(refused.body.message, /you are olga \(OPERATOR\); this requires ADMIN/)
  const { taskId } = await server.data('POST', '/api/tasks', { ...body('web1'), queueSeconds: 0 })
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.status, 'UNREACHABLE')
  t.is((await server.api('POST', `/api/tasks/${taskId}/retry`, {}, asOlga)).status, 403)
  const again = await server.data('POST', `/api/tasks/${taskId}/retry`, {})
  t.like(await server.data('GET', `/api/tasks/${again.taskId}`), { type: 'UPGRADE', retryOf: taskId })
  const { content } = await server.data('GET', '/api/audit?size=50')
  t.true(
    (content as { action: string; detail: object }[]).some(
      ({ action, detail }) => action === 'task.create' && JSON.stringify(detail).includes('upgrade'),
    ),
  )
})

// Skipped on a system without dpkg.
const whereDpkg = spawnSync('dpkg-query', ['--search', '/usr/bin/env']).status === 0 ? test : test.skip
whereDpkg('an executable owned by a package must be upgraded by the package manager', async (t) => {
  t.regex((await packageAdvice('/usr/bin/env')) ?? '', /^apt-get install/)
  t.is(await packageAdvice(process.argv[1] ?? ''), null)
})

const disk = mountSmallDisk(3_000_000)
disk?.unmount()
// Skipped if mounting is not allowed.
const whereMount = disk === null ? test.skip : test
whereMount('a full disk during an upgrade changes nothing, and the agent continues', async (t) => {
  const small = mountSmallDisk(3_000_000)
  if (small === null) throw new Error('nothing may be mounted any more')
  const server = await startTestServer(t)
  const second = makeBuild(t, { version: '0.2.0', key })
  const large = { ...second, executable: `${second.executable}${`# ${'x'.repeat(997)}\n`.repeat(4_000)}` }
  await release(server, key, large)
  const build = makeBuild(t, { version: '0.1.0', key })
  t.teardown(() => small.unmount())
  const agent = await upgradableAgent(t, server, build, 'web1', [
    '--data-dir',
    join(small.directory, 'agent'),
  ])
  t.regex(await result(server, 'web1'), /^FAILED no room for \d+ bytes in /)
  t.deepEqual(readdirSync(join(small.directory, 'agent/releases/0.2.0')), [])
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'echo on' },
    target: { selector: 'web1' },
  })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  t.is(agent.state()?.version ?? '0.1.0', '0.1.0')
})

whereMount('an upgrade in a data directory mounted noexec fails before the download', async (t) => {
  const unusable = mountSmallDisk(3_000_000, 'noexec')
  if (unusable === null) throw new Error('nothing may be mounted any more')
  const server = await startTestServer(t)
  await release(server, key, makeBuild(t, { version: '0.2.0', key }))
  const build = makeBuild(t, { version: '0.1.0', key })
  t.teardown(() => unusable.unmount())
  const dataDir = join(unusable.directory, 'agent')
  const agent = await upgradableAgent(t, server, build, 'web1', ['--data-dir', dataDir])
  t.is(
    await result(server, 'web1'),
    `FAILED ${dataDir}/releases is mounted noexec, and the agent runs from there after an upgrade: remount it with exec`,
  )
  t.is(agent.current(), null)
  t.deepEqual(readdirSync(join(dataDir, 'releases')), ['lock'])
})

test('an upgrade waits for open terminals, and a cancel during the wait changes nothing', async (t) => {
  const server = await startTestServer(t)
  const agent = await upgradableAgent(t, server, makeBuild(t, { version: '0.1.0', key }), 'web1')
  await release(server, key, makeBuild(t, { version: '0.2.0', key }))
  const open = async (): Promise<string> =>
    (await server.data('POST', '/api/terminals', { hostId: 1, cols: 80, rows: 24 })).sessionId
  const sessionId = await open()
  await until('the terminal is counted', () => agent.state()?.terminals === 1)
  const said = async (taskId: string) =>
    ((await server.data('GET', `/api/tasks/${taskId}/logs`)).entries as { data: string }[])
      .map(({ data }) => data)
      .join('')
  const cancelled = await start(server, 'web1')
  await until('it waits', async () => (await said(cancelled)).includes('waiting for 1 open terminal\n'))
  await server.data('POST', `/api/tasks/${cancelled}/cancel`)
  t.is((await finished(server, cancelled)).results[0]?.status, 'CANCELLED')
  t.is(agent.current(), null)
  const waiting = await start(server, 'web1')
  await until('it waits', async () => (await said(waiting)).includes('waiting for 1 open terminal\n'))
  t.is((await server.data('GET', `/api/terminals/${sessionId}`)).status, 'OPEN')
  await server.data('DELETE', `/api/terminals/${sessionId}`)
  t.is((await finished(server, waiting)).status, 'SUCCESS')
  t.is(agent.state()?.version, '0.2.0')
})
