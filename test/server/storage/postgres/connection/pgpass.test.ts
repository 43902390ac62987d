import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import {
  passwordFor,
  readStoreAddress,
} from '../../../../../src/server/storage/postgres/connection/address.ts'
import { temporaryDirectory } from '../../../../fixtures/rsm.ts'

const address = readStoreAddress('postgres://rsm@pg1,[fd00::1]:5433/fleet', undefined)
const [first, second] = address.places as [{ host: string; port: number }, { host: string; port: number }]

function passFile(t: ExecutionContext, text: string): string {
  const file = join(temporaryDirectory(t), 'pgpass')
  writeFileSync(file, text, { mode: 0o600 })
  process.env['PGPASSFILE'] = file
  return file
}

for (const [what, text] of [
  ['one that names all', 'pg1:5432:fleet:rsm:right'],
  ['another host, then one of stars', 'pg2:5432:fleet:rsm:wrong\n*:*:*:*:right\n'],
  ['another port, then one that fits', 'pg1:5433:*:rsm:wrong\npg1:*:*:rsm:right'],
  [
    'another database, another user, then one that fits',
    '*:*:rsm:rsm:wrong\n*:*:fleet:fleet:wrong\n*:*:fleet:rsm:right',
  ],
  ['the first of two that fit', 'pg1:*:*:*:right\npg1:*:*:*:wrong'],
  [
    'one after comments, empty lines and an empty password',
    '#pg1:*:*:*:wrong\n\n\r\npg1\n*:*:*:*:\n*:*:*:*:right\r\n',
  ],
] as const)
  test.serial(`the password comes from the first line that matches: ${what}`, async (t) => {
    passFile(t, text)
    t.is(await passwordFor(address, first), 'right')
  })

test.serial('a backslash escapes a colon or a backslash in a field', async (t) => {
  passFile(t, String.raw`fd00\:\:1:5433:fleet:rsm:a\:b\\c:d`)
  t.is(await passwordFor(address, second), String.raw`a:b\c:d`)
})

test.serial('the error for a missing password says what is missing and how to fix it', async (t) => {
  const refused = async (said: RegExp, hint: RegExp) => {
    const error = await t.throwsAsync(passwordFor(address, first), { code: 'unavailable', message: said })
    t.regex((error as Error & { hint: string }).hint, hint)
  }
  const file = passFile(t, 'pg2:*:*:*:wrong\n')
  await refused(/pg1:5432 asks for a password, and neither .* nor \S+pgpass has one/, /--store-password-file/)
  chmodSync(file, 0o640)
  await refused(/is not used, as others may read it/, /^chmod 600 \S+pgpass$/)
  process.env['PGPASSFILE'] = `${file}.none`
  await refused(/nor \S+\.none has one/, /~\/\.pgpass/)
  process.env['PGPASSFILE'] = join(file, '..')
  await refused(/cannot be read: EISDIR/, /--store-password-file/)
})
