import { createHash } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { request as askSecurely } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'ava'
import { readJoin } from '../../../../src/core/endpoint.ts'
import { openReleases } from '../../../../src/server/agents/releases/releases.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../../fixtures/rsm.ts'
import { ShiftedClock } from '../../../helpers/faults/shifted-clock.ts'
import { handOut } from '../../../helpers/servers/hand-out.ts'
import { adminLogin, startTestServer } from '../../../helpers/servers/server.ts'
import { startTlsServer } from '../../../helpers/servers/tls-server.ts'

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')
const elf = (machine: number, length = 64) => {
  const bytes = Buffer.alloc(length)
  bytes.write('\u007fELF', 'latin1')
  bytes.writeUInt16LE(machine, 18)
  return bytes
}

test('/install.sh and /dl need no token, list the executables, and serve ranges', async (t) => {
  const server = await startTestServer(t)
  const get = (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers })
  const script = await get('/install.sh')
  t.is(script.status, 200)
  t.is(script.headers.get('content-type'), 'text/x-shellscript; charset=utf-8')
  t.regex(await script.text(), /^#!\/bin\/sh\n[^]*\nmain "\$@"\n$/)
  const none = await get('/dl/rsm-linux-x64')
  t.is(none.status, 404)
  t.regex(await none.text(), /no builds to hand out; add one on its machine: rsm server releases add/)

  const bytes = elf(62, 300_000)
  await handOut(server, bytes)
  await handOut(server, elf(183), 'rsm-linux-arm64')
  const whole = await get('/dl/rsm-linux-x64')
  t.is(whole.headers.get('accept-ranges'), 'bytes')
  t.is(sha256(Buffer.from(await whole.arrayBuffer())), sha256(bytes))
  const etag = whole.headers.get('etag') ?? ''
  const part = await get('/dl/rsm-linux-x64', { range: 'bytes=18-19', 'if-range': etag })
  t.is(part.status, 206)
  t.is(part.headers.get('content-range'), 'bytes 18-19/300000')
  t.deepEqual([...Buffer.from(await part.arrayBuffer())], [62, 0])
  t.is((await get('/dl/rsm-linux-x64', { range: 'bytes=18-19', 'if-range': '"another"' })).status, 200)
  t.is((await get('/dl/rsm-linux-x64', { range: 'bytes=300000-' })).status, 416)
  const head = await fetch(`${server.url}/dl/rsm-linux-x64`, { method: 'HEAD' })
  t.is(head.headers.get('content-length'), '300000')
  const sums = await (await get('/dl/SHA256SUMS')).text()
  t.is(sums, `${sha256(elf(183))}  rsm-linux-arm64\n${sha256(bytes)}  rsm-linux-x64\n`)
  const other = await get('/dl/rsm-linux-riscv64')
  t.is(other.status, 404)
  t.regex(await other.text(), /available: rsm-linux-arm64, rsm-linux-x64, SHA256SUMS/)
  await server.restart()
  t.is(await (await get('/dl/SHA256SUMS')).text(), sums, 'a restart keeps them')
})

test('the 17th simultaneous download of a network gets 503 with Retry-After; an ended or stalled one frees a slot', async (t) => {
  const clock = new ShiftedClock()
  const server = await startTestServer(t, { clock })
  const { token } = await server.enroll('web1')
  await handOut(server, elf(62, 8 * 1024 * 1024))
  const url = `${server.url}/dl/rsm-linux-x64`
  // The clients do not read: the server sends only what fits into the buffers of the sockets.
  const held = await Promise.all(
    Array.from(
      { length: 16 },
      () =>
        new Promise<ReturnType<typeof request>>((resolve, reject) => {
          const asking = request(url, { agent: false }, () => resolve(asking))
          asking.on('error', reject).end()
        }),
    ),
  )
  for (const asking of held) asking.on('error', () => {})
  const refused = await fetch(url)
  t.is(refused.status, 503)
  t.is(refused.headers.get('retry-after'), '10')
  t.regex(await refused.text(), /^\{"code":503,"message":"all downloads are in use \(at most 24/)
  held[0]?.destroy()
  let status = 503
  for (let i = 0; i < 200 && status === 503; i++) {
    const again = await fetch(url)
    status = again.status
    await again.body?.cancel()
  }
  t.is(status, 200)
  const agents = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  t.is(agents.status, 200, 'agents have slots of their own')
  await agents.body?.cancel()
  clock.forward(600)
  const instead = await fetch(url)
  t.is(instead.status, 200)
  await instead.body?.cancel()
  for (const asking of held) asking.destroy()
})

test('a server without TLS beyond loopback serves no executables and prints no install command', async (t) => {
  const server = await startTestServer(t, { host: '0.0.0.0', insecureHttp: true })
  const url = server.url.replace('0.0.0.0', '127.0.0.1')
  for (const path of ['/install.sh', '/dl/SHA256SUMS', '/dl/rsm-linux-x64']) {
    const answer = await fetch(url + path)
    t.is(answer.status, 404, path)
    t.regex(await answer.text(), /speaks no TLS/)
  }
  const response = await fetch(`${url}/api/enrollment-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: 'http://rsm.example.org:18080' }),
  })
  const { data } = (await response.json()) as { data: { join: string; line: null; token: string } }
  t.is(data.line, null)
  t.deepEqual(readJoin(data.join), { url: 'http://rsm.example.org:18080', token: data.token })
})

test('a join string uses --public-url, else the URL of the caller, never a header; an invalid URL is a 400', async (t) => {
  const server = await startTestServer(t)
  const make = (body: object) => server.data('POST', '/api/enrollment-tokens', body)
  t.like(await make({}), { join: null, line: null })
  const own = await make({ url: 'https://rsm.example.org/' })
  t.is(readJoin(own.join).url, 'https://rsm.example.org')
  t.is(own.line, ` RSM_AGENT_ENROLL_TOKEN=${own.token} rsm agent run --url https://rsm.example.org`)
  const wrong = await server.api('POST', '/api/enrollment-tokens', { url: 'ftp://x', fingerprint: 'abc' })
  t.is(wrong.status, 400)
  t.deepEqual(
    wrong.body.errors?.map(({ field }) => field),
    ['url', 'fingerprint'],
  )
  const named = await startTestServer(t, { publicUrl: 'https://public.example.org/' })
  const { join: text } = await named.data('POST', '/api/enrollment-tokens', { url: 'https://mine' })
  t.is(readJoin(text).url, 'https://public.example.org')
})

test("a join string pins a self-signed server by its key, in any notation of the caller's pin", async (t) => {
  const { server, url } = await startTlsServer(t, { selfSigned: true })
  const login = await fetchPinned(url, '/api/auth/login', adminLogin)
  const { token } = login.data as { token: string }
  const make = async (body: object) =>
    (await fetchPinned(url, '/api/enrollment-tokens', body, token)).data as { join: string; line: string }
  t.is(readJoin((await make({ url })).join).fingerprint, server.fingerprint ?? '')
  t.is(
    readJoin((await make({ url, fingerprint: server.fingerprint })).join).fingerprint,
    server.fingerprint ?? '',
  )
  const proxied = `sha256//${'B'.repeat(42)}A=`
  t.is(readJoin((await make({ url, fingerprint: proxied })).join).fingerprint, proxied)
  t.is(readJoin((await make({ url: 'http://127.0.0.1:1' })).join).fingerprint, undefined)
})

/** A POST to a server with a self-signed certificate. */
function fetchPinned(url: string, path: string, body: object, token?: string): Promise<{ data: unknown }> {
  return new Promise((resolve, reject) => {
    const asking = askSecurely(new URL(path, url), {
      method: 'POST',
      agent: false,
      rejectUnauthorized: false,
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    })
    asking.on('error', reject)
    asking.on('response', (response) => {
      text(response).then((said) => resolve(JSON.parse(said) as { data: unknown }), reject)
    })
    asking.end(JSON.stringify(body))
  })
}

test('rsm server releases adds, lists and removes; invalid executables are refused and leave nothing behind', async (t) => {
  const server = await startTestServer(t)
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_DATA_DIR: server.dataDir })
  const rsm = (...words: string[]) => runRsm(['server', 'releases', ...words], env)
  const file = async (name: string, content: string | Buffer) => {
    await writeFile(join(home, name), content)
    return join(home, name)
  }
  t.regex((await rsm('list')).stdout, /^no executables: rsm server releases add/)
  const x64 = await file('rsm-linux-x64', elf(62))
  const cases: [string[], number, RegExp][] = [
    [[await file('rsm', elf(62))], 2, /invalid name of an executable: rsm\n[^]*--name rsm-linux-x64/],
    [[await file('rsm-linux-arm64', elf(62))], 2, /rsm-linux-arm64 is not a program for arm64/],
    [[await file('text', 'hello'), '--name', 'rsm-linux-x64'], 2, /rsm-linux-x64 is not a program/],
    [[await file('rsm-linux-x64.xz', 'hello')], 2, /is not an \.xz file/],
    [[join(home, 'missing'), '--name', 'rsm-linux-x64'], 2, /cannot copy .*missing.*no such file/],
  ]
  for (const [words, exit, message] of cases) {
    const refused = await rsm('add', ...words)
    t.is(refused.exit, exit, refused.stderr)
    t.regex(refused.stderr, message)
  }
  t.deepEqual(await readdir(join(server.dataDir, 'releases')), [])
  t.is((await rsm('add', x64)).stdout, `the server now offers rsm-linux-x64, sha256 ${sha256(elf(62))}\n`)
  const listed = JSON.parse((await rsm('list', '--json')).stdout) as { releases: object[] }
  t.like(listed.releases[0], { name: 'rsm-linux-x64', size: 64, sha256: sha256(elf(62)) })
  t.regex((await rsm('list')).stdout, /^NAME +SIZE +ADDED +VERSION +SIGNED +SHA256\nrsm-linux-x64 .* - +no /)
  t.is((await rsm('remove', 'rsm-linux-arm64', '-y')).exit, 5)
  t.is((await rsm('remove', 'rsm-linux-x64', '-y')).exit, 0)
  const { content } = await server.data('GET', '/api/audit?size=10')
  const actions = (content as { action: string }[]).map(({ action }) => action)
  t.deepEqual(
    actions.filter((action) => action.startsWith('release.')),
    ['release.remove', 'release.add'],
  )
  await server.stop()
  t.is((await rsm('add', x64)).exit, 4)
})

test('the server’s own executable is served until one of its architecture is added; leftovers of an add are removed', async (t) => {
  const dataDir = temporaryDirectory(t)
  const own = join(dataDir, 'own')
  await writeFile(own, '#!/bin/sh\n')
  await mkdir(join(dataDir, 'releases'))
  await writeFile(join(dataDir, 'releases', '.incoming-x'), 'half')
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const releases = await openReleases(dataDir, log, own)
  t.deepEqual(await readdir(join(dataDir, 'releases')), [])
  const arch = process.arch
  const [build] = await releases.builds()
  t.like(build, { name: `rsm-linux-${arch}`, sha256: sha256('#!/bin/sh\n') })
  t.is((await releases.list())[0]?.addedAt, null)
  await writeFile(join(dataDir, 'releases', '.incoming-y'), '#!/bin/bash\n')
  await releases.add('.incoming-y', `rsm-linux-${arch}`)
  t.is((await releases.find(`rsm-linux-${arch}`)).sha256, sha256('#!/bin/bash\n'))
  t.is((await releases.builds()).length, 1)
  await releases.remove(`rsm-linux-${arch}`)
  t.is((await releases.builds())[0]?.sha256, sha256('#!/bin/sh\n'))
})
