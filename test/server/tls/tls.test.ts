import { execFileSync } from 'node:child_process'
import { hash, X509Certificate } from 'node:crypto'
import { chmod, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { Log } from '../../../src/disk/log.ts'
import { keptCertificate, openTls, type TlsOptions, wantsTls } from '../../../src/server/tls/tls.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startTlsServer } from '../../helpers/servers/tls-server.ts'

/** Discards the messages, because the errors here are expected. */
const log = { debug() {}, info() {}, warn() {}, error() {} } satisfies Log
const hasOpenssl = (() => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()
const day = 24 * 60 * 60 * 1000

const open = (t: ExecutionContext, options: TlsOptions, host = '127.0.0.1') =>
  openTls(options, { directory: temporaryDirectory(t), host, log })

async function certificateFiles(t: ExecutionContext, host = '127.0.0.1', now = Date.now()) {
  const directory = temporaryDirectory(t)
  const { fingerprint } = await keptCertificate(directory, host, log, now)
  return { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key'), fingerprint }
}

/** The fingerprint of the key that a new connection presents. */
function shownBy(url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const shown = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' })
      socket.destroy()
      resolve(`sha256//${hash('sha256', shown ?? '', 'base64')}`)
    })
    socket.on('error', reject)
  })
}

test('a self-signed certificate is private, and replaced (with the same key) only for another host or near expiry', async (t) => {
  const directory = temporaryDirectory(t)
  const made = await keptCertificate(directory, '127.0.0.1', log, Date.now())
  t.true(made.selfSigned)
  t.regex(made.fingerprint, /^sha256\/\/[A-Za-z0-9+/]{43}=$/)
  for (const name of ['tls.key', 'tls.crt']) t.is((await stat(join(directory, name))).mode & 0o777, 0o600)
  for (const host of ['127.0.0.1', 'localhost', '::1', '0.0.0.0'])
    t.is((await keptCertificate(directory, host, log, Date.now())).cert, made.cert, host)
  const named = await keptCertificate(directory, 'rsm.example.org', log, Date.now())
  t.not(named.cert, made.cert)
  const late = named.expiresAt - 29 * day
  const renewed = await keptCertificate(directory, 'rsm.example.org', log, late)
  t.not(renewed.cert, named.cert)
  t.is(new X509Certificate(renewed.cert).checkHost('rsm.example.org'), 'rsm.example.org')
  await rm(join(directory, 'tls.crt'))
  const found = await keptCertificate(directory, '127.0.0.1', log, Date.now())
  for (const { fingerprint } of [named, renewed, found]) t.is(fingerprint, made.fingerprint)
  // A crash between the two writes leaves a key with another certificate.
  const { keyFile, fingerprint } = await certificateFiles(t)
  await writeFile(join(directory, 'tls.key'), await readFile(keyFile))
  t.is((await keptCertificate(directory, 'localhost', log, Date.now())).fingerprint, fingerprint)
  await writeFile(join(directory, 'tls.key'), 'half of a')
  t.not((await keptCertificate(directory, 'localhost', log, Date.now())).fingerprint, fingerprint)
})

test('errors of --tls-cert and --tls-key are one sentence that names the file', async (t) => {
  const good = await certificateFiles(t)
  const other = await certificateFiles(t)
  const text = join(temporaryDirectory(t), 'text')
  await writeFile(text, 'no PEM')
  const chain = join(temporaryDirectory(t), 'chain')
  await writeFile(chain, `${await readFile(good.certFile, 'utf8')}\n-----BEGIN CERTIFICATE-----\nMIIB\n`)
  const cases: [TlsOptions, RegExp][] = [
    [{ certFile: good.certFile }, /--tls-cert requires --tls-key/],
    [{ keyFile: good.keyFile }, /--tls-key requires --tls-cert/],
    [{ ...good, selfSigned: true }, /cannot be combined with --tls-cert/],
    [
      { ...good, certFile: '/nonexistent' },
      /cannot read \/nonexistent \(--tls-cert\): there is no such file/,
    ],
    [{ ...good, keyFile: '/' }, /cannot read \/ \(--tls-key\): it is a directory/],
    [{ ...good, certFile: text }, /text \(--tls-cert\) contains no PEM certificate/],
    [{ ...good, certFile: chain }, /chain \(--tls-cert\) is invalid: certificate 2 \(line \d+\) is damaged/],
    [{ ...good, keyFile: text }, /text \(--tls-key\) contains no PEM private key/],
    [{ ...good, keyFile: other.keyFile }, /tls\.key does not belong to the certificate in .*tls\.crt/],
  ]
  for (const [options, message] of cases) {
    const error = await t.throwsAsync(open(t, options), { instanceOf: RsmError, message })
    t.is(error.code, 'usage')
  }
  t.is(await open(t, {}), null)
  t.is((await open(t, good))?.certificate.fingerprint, good.fingerprint)
})

test('an expired certificate is still served', async (t) => {
  const expired = await certificateFiles(t, '127.0.0.1', Date.now() - 4000 * day)
  t.is((await open(t, expired))?.certificate.fingerprint, expired.fingerprint)
})

test('a renewed certificate is loaded without a restart, an invalid one is not, and open connections stay', async (t) => {
  const files = await certificateFiles(t)
  const { server, url } = await startTlsServer(t, files)
  t.is(server.fingerprint, files.fingerprint)
  const { hostname, port } = new URL(url)
  const held = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  held.on('error', () => {})
  t.teardown(() => held.destroy())
  await new Promise((resolve) => held.once('secureConnect', resolve))

  await writeFile(files.certFile, 'half of a')
  await server.reloadCertificate()
  t.is(await shownBy(url), files.fingerprint)

  const renewed = await certificateFiles(t)
  await writeFile(files.certFile, await readFile(renewed.certFile))
  await writeFile(files.keyFile, await readFile(renewed.keyFile))
  await chmod(files.keyFile, 0o600)
  await server.reloadCertificate()
  t.is(await shownBy(url), renewed.fingerprint)
  t.is(server.fingerprint, renewed.fingerprint)
  held.write('GET /api/health HTTP/1.1\r\nhost: x\r\n\r\n')
  const answer = await new Promise<Buffer>((resolve) => held.once('data', resolve))
  t.regex(answer.toString(), /^HTTP\/1\.1 200/)
  t.notRegex(answer.toString(), /strict-transport-security/)
})

const ofOpenssl = hasOpenssl ? test : test.skip
// Skipped (2026-11-21) without openssl, because nothing else here can create a certificate authority.
ofOpenssl(
  'a certificate of an authority is trusted with --ca-file, and --hsts sends Strict-Transport-Security',
  async (t) => {
    const directory = temporaryDirectory(t)
    const at = (name: string) => join(directory, name)
    const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'ignore' })
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl(
      'req',
      '-x509',
      ...ec,
      '-days',
      '2',
      '-subj',
      '/CN=An authority',
      '-keyout',
      at('ca.key'),
      '-out',
      at('ca.crt'),
    )
    openssl('req', ...ec, '-subj', '/CN=rsm', '-keyout', at('tls.key'), '-out', at('tls.csr'))
    await writeFile(at('names'), 'subjectAltName=IP:127.0.0.1')
    openssl(
      'x509',
      '-req',
      '-in',
      at('tls.csr'),
      '-CA',
      at('ca.crt'),
      '-CAkey',
      at('ca.key'),
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      at('names'),
      '-out',
      at('tls.crt'),
    )
    const files = { certFile: at('tls.crt'), keyFile: at('tls.key') }
    const { server, ask } = await startTlsServer(t, { ...files, hsts: true })
    t.false(server.selfSigned)
    await t.throwsAsync(ask('/api/health'), { message: /unable to verify/ })
    const { status, headers } = await ask('/api/health', await readFile(at('ca.crt'), 'utf8'))
    t.is(status, 200)
    t.is(headers['strict-transport-security'], 'max-age=15768000')
    const plain = await (await startTlsServer(t, files)).ask(
      '/api/health',
      await readFile(at('ca.crt'), 'utf8'),
    )
    t.is(plain.headers['strict-transport-security'], undefined)
  },
)

test('--hsts is refused without --tls-cert', (t) => {
  for (const options of [{ hsts: true }, { hsts: true, selfSigned: true }])
    t.throws(() => wantsTls(options), { code: 'usage', message: /--hsts requires --tls-cert/ })
  t.true(wantsTls({ hsts: true, certFile: 'a', keyFile: 'b' }))
})
