import { createHash } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { openExecutables } from '../../../src/cli/ssh/executables.ts'
import { openClient } from '../../../src/client/client.ts'
import { buildName } from '../../../src/core/release.ts'
import { ownPackage } from '../../../src/disk/own-files.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { handOut } from '../../helpers/servers/hand-out.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
const other = arch === 'x64' ? 'arm64' : 'x64'
const script = '#!/bin/sh\necho of the server\n'
const { version } = ownPackage()

async function start(t: ExecutionContext) {
  const server = await startTestServer(t)
  const client = await openClient(server)
  const directory = temporaryDirectory(t)
  const own = join(temporaryDirectory(t), 'rsm')
  return { server, client, directory, own }
}

test("the server's executable is fetched once, and not at all if this program is the same", async (t) => {
  const { server, client, directory, own } = await start(t)
  await handOut(server, script, buildName(arch))
  writeFileSync(own, `${script}# newer\n`)
  const executableFor = await openExecutables(client, directory, version, own)
  const [one, two] = await Promise.all([executableFor(arch), executableFor(arch)])
  t.is(one, two)
  t.like(one, { size: script.length, sha256: createHash('sha256').update(script).digest('hex') })
  t.is(await text(one.open()), script)
  t.deepEqual(readdirSync(directory), [buildName(arch)])

  writeFileSync(own, script)
  const empty = temporaryDirectory(t)
  const same = await (await openExecutables(client, empty, version, own))(arch)
  t.is(same.sha256, one.sha256)
  t.deepEqual(readdirSync(empty), [])
  await t.throwsAsync(executableFor(other), {
    message: new RegExp(`the server has no ${buildName(other)}, only`),
  })
})

test('this program is copied if the server has no executables and the same version', async (t) => {
  const { client, directory, own } = await start(t)
  writeFileSync(own, script)
  const executable = await (await openExecutables(client, directory, version, own))(arch)
  t.is(await text(executable.open()), script)
  await t.throwsAsync(openExecutables(client, directory, '0.0.1', own), {
    message: /has no executable to copy/,
  })
  await t.throwsAsync(openExecutables(client, directory, version, undefined), {
    message: /has no executable to copy/,
  })
})
