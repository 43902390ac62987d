import { spawnSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { readReleaseSignature } from '../../../../src/core/release.ts'
import { isReleaseSigned } from '../../../../src/disk/own-release.ts'
import { openReleases } from '../../../../src/server/agents/releases/releases.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../../helpers/agents/scripted-agent.ts'
import { finished } from '../../../helpers/clients/tasks.ts'
import { said } from '../../../helpers/programs/said.ts'
import { makeBuild } from '../../../helpers/releases/build.ts'
import { newReleaseKey, ownArch, signedBy } from '../../../helpers/releases/release-key.ts'
import { handOut } from '../../../helpers/servers/hand-out.ts'
import { startTestServer } from '../../../helpers/servers/server.ts'

const bytes = '#!/bin/sh\nexit 0\n'
const name = `rsm-linux-${ownArch}`

test('a signature is valid only for the version, architecture and bytes it was made for', (t) => {
  const key = newReleaseKey()
  const signed = signedBy(key, '0.2.0', bytes)
  t.true(isReleaseSigned(key.held, signed))
  t.false(isReleaseSigned(newReleaseKey().held, signed))
  t.false(isReleaseSigned(key.held, { ...signed, version: '0.3.0' }))
  t.false(isReleaseSigned(key.held, { ...signed, arch: ownArch === 'x64' ? 'arm64' : 'x64' }))
  t.false(isReleaseSigned(key.held, { ...signed, sha256: '0'.repeat(64) }))
  t.deepEqual(readReleaseSignature(JSON.stringify(signed)), signed)
  for (const wrong of [
    '',
    'null',
    '[]',
    '{}',
    JSON.stringify({ ...signed, version: '../../0.2.0' }),
    JSON.stringify({ ...signed, version: '0.2' }),
    JSON.stringify({ ...signed, sha256: 'abc' }),
    JSON.stringify({ ...signed, os: 'darwin' }),
    JSON.stringify({ ...signed, signature: 'no' }),
  ])
    t.is(readReleaseSignature(wrong), null, wrong)
})

test('a server with a built-in release key accepts only its signatures, and the list shows what is signed', async (t) => {
  const key = newReleaseKey()
  const { program } = makeBuild(t, { version: '0.1.0', key })
  const home = temporaryDirectory(t)
  const dataDir = join(home, 'server')
  const env = cleanEnv(home, {
    RSM_ADMIN_PASSWORD: 'a password for tests',
    RSM_LOG_LEVEL: 'ERROR',
    RSM_DATA_DIR: dataDir,
    // An attack: keys in the environment must not count as release keys.
    RSM_RELEASE_PUBLIC_KEY: newReleaseKey().held,
    RSM_RELEASE_KEY: newReleaseKey().held,
  })
  const running = startRsm(['server', 'start', '--port', '0', '--json'], env, { program })
  t.teardown(async () => {
    running.child.kill()
    await running.done
  })
  await said(running.child, '}\n')
  const file = join(home, name)
  await writeFile(file, bytes)
  const add = async (signature: object | string | null) => {
    const text = typeof signature === 'string' ? signature : JSON.stringify(signature)
    await writeFile(`${file}.sig`, text)
    return runRsm(['server', 'releases', 'add', file], env)
  }
  const cases: [object | string, RegExp][] = [
    ['', /rsm-linux-\w+\.sig is not the signature of a release/],
    [signedBy(key, '0.2.0', 'other'), /belongs to another executable, rsm 0\.2\.0 for/],
    [signedBy(newReleaseKey(), '0.2.0', bytes), /is not by the release key of this server's build/],
    [{ ...signedBy(key, '0.2.0', bytes), version: '0.9.0' }, /is not by the release key/],
  ]
  for (const [signature, message] of cases) {
    const refused = await add(signature)
    t.is(refused.exit, 2, refused.stderr)
    t.regex(refused.stderr, message)
  }
  t.deepEqual(await readdir(join(dataDir, 'releases')), [])
  const added = await add(signedBy(key, '0.2.0', bytes))
  t.is(added.exit, 0, added.stderr)
  t.regex(added.stdout, /now offers [^]*hosts can be upgraded to 0\.2\.0: rsm hosts upgrade\n$/)
  const list = await runRsm(['server', 'releases', 'list'], env)
  t.regex(
    list.stdout,
    /^NAME +SIZE +ADDED +VERSION +SIGNED +SHA256\nrsm-linux-\w+ .* 0\.2\.0 +yes +[0-9a-f]{64}\n$/,
  )
  await writeFile(file, '#!/bin/sh\nexit 1\n')
  await writeFile(`${file}.sig`, JSON.stringify(signedBy(key, '0.3.0', '#!/bin/sh\nexit 1\n')))
  t.is((await runRsm(['server', 'releases', 'add', file, '--json'], env)).exit, 0)
  const { releases } = JSON.parse((await runRsm(['server', 'releases', 'list', '--json'], env)).stdout) as {
    releases: object[]
  }
  t.like(releases[0], { version: '0.3.0', signature: 'VALID' })
  t.is((await runRsm(['server', 'releases', 'remove', name, '-y'], env)).exit, 0)
  t.deepEqual(await readdir(join(dataDir, 'releases')), [])
})

test('a build without a release key keeps signatures unchecked and ignores those of other executables', async (t) => {
  const dataDir = temporaryDirectory(t)
  const directory = join(dataDir, 'releases')
  await mkdir(directory)
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const releases = await openReleases(dataDir, log, undefined)
  await writeFile(join(directory, '.incoming-x'), bytes)
  const signed = signedBy(newReleaseKey(), '0.2.0', bytes)
  const added = await releases.add('.incoming-x', name, JSON.stringify(signed))
  t.like(added, { version: '0.2.0', signature: 'UNCHECKED' })
  t.deepEqual(
    (await releases.signed()).map(({ release }) => release),
    [signed],
  )
  // A crash between the two files may leave this.
  await writeFile(join(directory, name), `${bytes}# another\n`)
  await writeFile(join(directory, `${name}.sig.tmp`), 'half')
  const again = await openReleases(dataDir, log, undefined)
  t.deepEqual(await again.signed(), [])
  t.like((await again.list())[0], { version: null, signature: null })
  t.deepEqual((await readdir(directory)).sort(), [name, `${name}.sig`])
})

test('P53 an upgrade is sent with signed builds and a script that fails on old agents; the new version reports the end', async (t) => {
  const server = await startTestServer(t)
  const release = signedBy(newReleaseKey(), '0.2.0', bytes)
  await handOut(server, bytes, name, release)
  const identity = await server.enroll('web1')
  const former = await ScriptedAgent.link(server, identity, { agentVersion: '0.1.0' })
  const { taskId } = await server.data('POST', '/api/tasks', {
    upgrade: { allowDowngrade: true },
    target: { hostIds: [identity.hostId] },
  })
  const { upgrade, script } = await former.execution(taskId)
  const { arch, sha256, signature } = release
  t.deepEqual(upgrade, {
    version: '0.2.0',
    allowDowngrade: true,
    builds: [{ arch, size: bytes.length, sha256, signature }],
  })
  const { status, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  t.is(status, 126)
  t.regex(stderr, /^the agent of this host cannot upgrade itself yet/)
  await former.cut()
  const next = await ScriptedAgent.link(server, identity, {
    agentVersion: '0.2.0',
    tasks: [{ taskId, state: 'RUNNING', lastSequence: -1 }],
  })
  next.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

// Skipped without openssl, which creates the key as docs/operate/packages.md describes.
const whereOpenssl = spawnSync('openssl', ['version']).error ? test.skip : test
whereOpenssl(
  'packaging signs with a key from openssl, and refuses a key whose public half is not in the build',
  async (t) => {
    const out = temporaryDirectory(t)
    const keyFile = join(out, 'release.pem')
    spawnSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', keyFile])
    const held = createPublicKey(await readFile(keyFile)).export({ format: 'der', type: 'spki' })
    const publicKey = held.subarray(-32).toString('base64')
    await writeFile(join(out, name), bytes)
    const script = `import { readSigningKey, signExecutable } from './.ci/packaging/sign.js'
    signExecutable(${JSON.stringify(out)}, '${name}', '${ownArch}', readSigningKey())`
    const sign = (RSM_RELEASE_PUBLIC_KEY: string) =>
      spawnSync(process.execPath, ['--input-type=module', '-e', script], {
        env: { PATH: process.env['PATH'], RSM_RELEASE_KEY_FILE: keyFile, RSM_RELEASE_PUBLIC_KEY },
        encoding: 'utf8',
      })
    t.true(sign('').stderr.includes(`set RSM_RELEASE_PUBLIC_KEY=${publicKey} with it`))
    t.true(sign('short').stderr.includes('not the 32 bytes of an Ed25519 key'))
    const signed = sign(publicKey)
    t.is(signed.status, 0, signed.stderr)
    const release = readReleaseSignature(await readFile(join(out, `${name}.sig`), 'utf8'))
    t.true(release !== null && isReleaseSigned(publicKey, release))
  },
)
