import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import test from 'ava'
import { RsmError } from '../../../../../src/core/errors.ts'
import {
  displayAddress,
  readStoreAddress,
} from '../../../../../src/server/storage/postgres/connection/address.ts'
import { temporaryDirectory } from '../../../../fixtures/rsm.ts'

test('the URL of a store contains user, hosts and database', (t) => {
  const address = readStoreAddress(
    'postgres://rsm@pg1,pg2:5433,[::1]:5434/fleet?sslmode=verify-full',
    undefined,
  )
  t.like(address, { user: 'rsm', database: 'fleet', password: undefined })
  t.deepEqual(address.places, [
    { host: 'pg1', port: 5432 },
    { host: 'pg2', port: 5433 },
    { host: '::1', port: 5434 },
  ])
  t.deepEqual(address.tls, { mode: 'verify-full', rootCert: undefined })
  t.is(address.connectTimeout, 5_000)
  t.is(readStoreAddress('postgres://rsm@pg1/rsm?connect_timeout=2', undefined).connectTimeout, 2_000)
  t.is(displayAddress(address), 'postgres://rsm@pg1:5432,pg2:5433,::1:5434/fleet')
})

for (const [url, insecure, mode] of [
  ['postgres://rsm@127.0.0.1,[::1],localhost/rsm', false, 'disable'],
  ['postgres://rsm@%2Frun%2Fpostgresql/rsm', false, 'disable'],
  ['postgres://rsm@127.0.0.1/rsm?sslmode=disable', false, 'disable'],
  ['postgres://rsm@127.0.0.1/rsm?sslmode=require', false, 'require'],
  ['postgres://rsm@pg1/rsm', false, 'verify-full'],
  ['postgres://rsm@127.0.0.1,10.0.0.9/rsm', false, 'verify-full'],
  ['postgres://rsm@pg1/rsm?sslmode=require', false, 'require'],
  ['postgres://rsm@pg1/rsm', true, 'disable'],
  ['postgres://rsm@pg1/rsm?sslmode=verify-full', true, 'verify-full'],
] as const)
  test(`${url}${insecure ? ' with --insecure-store' : ''} is used with sslmode ${mode}`, (t) => {
    t.is(readStoreAddress(url, undefined, insecure).tls.mode, mode)
  })

test('plain text to a remote PostgreSQL requires --insecure-store', (t) => {
  const url = 'postgres://rsm@localhost,pg1/rsm?sslmode=disable'
  const error = t.throws(() => readStoreAddress(url, undefined), { instanceOf: RsmError, code: 'usage' })
  t.is(error?.message, '--store has sslmode=disable for pg1, which is not this machine')
  t.regex(error?.hint ?? '', /--insecure-store$/)
  t.is(readStoreAddress(url, undefined, true).tls.mode, 'disable')
})

for (const [url, fault] of [
  ['postgres://rsm@pg1', 'no database'],
  ['postgres://rsm@pg1/', 'no database'],
  ['postgres://pg1/rsm', 'no user'],
  ['postgres://rsm@/rsm', 'no host'],
  ['postgres://rsm:secret@pg1/rsm', 'holds a password'],
  ['postgres://rsm@pg1/rsm?password=secret', 'holds a password'],
  ['postgres://rsm@pg1:0/rsm', 'invalid port in --store: 0'],
  ['postgres://rsm@pg1/rsm?sslmode=prefer', 'unknown sslmode in --store: prefer'],
  ['postgres://rsm@pg1/rsm?connect_timeout=0', 'invalid connect_timeout in --store: 0'],
  ['postgres://rsm@pg1/rsm?options=-c', 'unknown parameter in --store: options'],
  ['mysql://rsm@pg1/rsm', 'not a PostgreSQL URL'],
] as const)
  test(`the URL ${url} is refused`, (t) => {
    const error = t.throws(() => readStoreAddress(url, undefined), { instanceOf: RsmError })
    t.is(error?.code, 'usage')
    t.true(error?.message.includes(fault), error?.message)
    t.false(error?.message.includes('secret'))
  })

test('the password is the first line of its file', (t) => {
  const file = join(temporaryDirectory(t), 'password')
  writeFileSync(file, 'secret\nmore')
  t.is(readStoreAddress('postgres://rsm@pg1/rsm', file).password, 'secret')
  writeFileSync(file, '\n')
  t.throws(() => readStoreAddress('postgres://rsm@pg1/rsm', file), { message: /empty first line/ })
  t.throws(() => readStoreAddress('postgres://rsm@pg1/rsm', `${file}.missing`), {
    message: /cannot be read/,
  })
})

test('sslrootcert is refused if one of its certificates is damaged', (t) => {
  const file = join(temporaryDirectory(t), 'ca.pem')
  const block = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  writeFileSync(file, `${rootCertificates[0]}\n${block}`)
  const url = `postgres://rsm@pg1/rsm?sslrootcert=${file}`
  const error = t.throws(() => readStoreAddress(url, undefined), { instanceOf: RsmError, code: 'usage' })
  t.regex(error?.message ?? '', /^sslrootcert in --store: .* certificate 2 \(line \d+\) is damaged$/)
  writeFileSync(file, `${rootCertificates[0]}\n`)
  t.is(readStoreAddress(url, undefined).tls.rootCert, file)
})
