import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { signedRelease, writeExecutable } from '../../src/disk/new-release.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'
import { newReleaseKey, signedBy } from '../helpers/releases/release-key.ts'

const bytes = 'an executable'

async function* pieces(): AsyncGenerator<Buffer> {
  yield Buffer.from(bytes.slice(0, 5))
  yield Buffer.from(bytes.slice(5))
}

test('an upgrade accepts a signature by the key of its build, for this file only, as text or parsed', (t) => {
  const key = newReleaseKey()
  const signed = signedBy(key, '0.2.0', bytes)
  const other = signedBy(key, '0.2.0', 'another executable')
  const { sha256 } = signed
  t.deepEqual(signedRelease(key.held, signed, sha256), signed)
  t.deepEqual(signedRelease(key.held, JSON.stringify(signed), sha256), signed)
  t.is(signedRelease(key.held, '{}', sha256), 'malformed')
  t.is(signedRelease(key.held, other, sha256), 'other file')
  t.is(signedRelease(key.held, { ...other, sha256 }, sha256), 'other key')
  t.is(signedRelease(key.held, { ...signed, version: '0.3.0' }, sha256), 'other key')
  t.is(signedRelease(newReleaseKey().held, signed, sha256), 'other key')
})

test('a new executable gets its mode whatever the umask, and never replaces a file', async (t) => {
  const path = join(await temporaryDirectory(t), 'rsm')
  const { sha256 } = signedBy(newReleaseKey(), '0.2.0', bytes)
  t.is(await writeExecutable(pieces(), path, 0o777), sha256)
  t.is(readFileSync(path, 'utf8'), bytes)
  t.is(statSync(path).mode & 0o7777, 0o777)
  await t.throwsAsync(writeExecutable(pieces(), path, 0o777), { code: 'EEXIST' })
})
