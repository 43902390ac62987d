import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { startTestServer } from '../helpers/servers/server.ts'

async function world(t: ExecutionContext) {
  const server = await startTestServer(t)
  await server.data('POST', '/api/scripts', { name: '=HYPERLINK("x")', type: 'BASH', content: 'true' })
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: server.token })
  const log = join(server.dataDir, 'audit', 'audit.log')
  return { server, home, env, log, file: join(home, 'audit.jsonl') }
}

test('audit export writes the stored log, readable by its owner only, and verify finds the copy sound', async (t) => {
  const { env, log, file } = await world(t)
  const ran = await runRsm(['audit', 'export', '-o', file], env)
  t.is(ran.exit, 0, ran.stderr)
  const head = /, sound, head (5:[0-9a-f]{64})\n$/.exec(ran.stdout)?.[1]
  t.truthy(head, ran.stdout)
  t.is(statSync(file).mode & 0o777, 0o600)
  t.deepEqual(readFileSync(file), readFileSync(log))
  const verified = await runRsm(['audit', 'verify', '--file', file, '--head', head ?? ''], env)
  t.is(verified.stdout, `the audit log is sound: 5 entries, head ${head}\n`)

  const again = await runRsm(['audit', 'export', '-o', file], env)
  t.is(again.exit, 2)
  t.regex(again.stderr, /already exists: use --yes to replace it/)
  const json = await runRsm(['audit', 'export', '-o', file, '--yes', '--json'], env)
  const bytes = statSync(file).size
  t.deepEqual(JSON.parse(json.stdout), { file, format: 'jsonl', entries: 5, bytes, head })
  const out = await runRsm(['audit', 'export'], env)
  t.is(out.stdout, readFileSync(log, 'utf8'))
  t.is((await runRsm(['audit', 'export', '--json'], env)).exit, 2)
})

test('audit export has the filters of audit list; in CSV a name that looks like a formula stays text', async (t) => {
  const { env, file } = await world(t)
  const csv = ['audit', 'export', '--format', 'csv', '--action', 'script.create', '--since', '5m', '-o', file]
  const ran = await runRsm(csv, env)
  t.regex(ran.stdout, /audit\.jsonl: 1 entry, \d+ B\n$/, ran.stderr)
  const [heading, row, rest] = readFileSync(file, 'utf8').split('\n')
  t.is(
    heading,
    'id,at,actorType,actorId,actorName,tokenId,ip,action,objectType,objectId,objectName,outcome,detail,hash',
  )
  t.regex(
    row ?? '',
    /^5,\S+Z,user,1,admin,\d+,127\.0\.0\.1,script\.create,script,1,"'=HYPERLINK\(""x""\)",SUCCESS,"\{/,
  )
  t.is(rest, '')
  const none = await runRsm(['audit', 'export', '--action', 'no.such'], env)
  t.deepEqual([none.exit, none.stdout], [0, ''])
  t.is((await runRsm(['audit', 'export', '--format', 'xml'], env)).exit, 2)
})

test('S11 audit export of an edited log writes it unchanged, reports the place, and exits with 6', async (t) => {
  const { env, log, file } = await world(t)
  writeFileSync(log, readFileSync(log, 'utf8').replace('"user.create"', '"user.delete"'))
  const ran = await runRsm(['audit', 'export', '-o', file], env)
  t.is(ran.exit, 6)
  t.regex(
    ran.stderr,
    /was written as it is \(5 entries, .*\), but it is not what the server wrote: line 2 does not match its hash/,
  )
  t.deepEqual(readFileSync(file), readFileSync(log))
})

/** A proxy that cuts each of the first connections after its number of bytes in `cuts`. */
async function cutter(t: ExecutionContext, port: number, cuts: number[]): Promise<string> {
  const proxy = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    let left = cuts.shift() ?? Number.POSITIVE_INFINITY
    client.on('error', () => upstream.destroy()).pipe(upstream)
    upstream.on('error', () => client.destroy())
    upstream.on('end', () => client.end())
    upstream.on('data', (chunk) => {
      client.write(chunk.subarray(0, left))
      left -= chunk.length
      if (left > 0) return
      upstream.destroy()
      client.end(() => client.destroy())
    })
  })
  t.teardown(() => proxy.close())
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

/** A log long enough that connections are cut within it. */
async function cutWorld(t: ExecutionContext) {
  const made = await world(t)
  for (let at = 0; at < 300; at++)
    await made.server.api('GET', '/api/users', undefined, { authorization: 'Bearer rsm_nonsense' })
  const port = Number(new URL(made.server.url).port)
  return { ...made, url: await cutter(t, port, [9000, 3000, 2500]) }
}

test('audit export resumes after a lost connection: the file has each byte once', async (t) => {
  const { env, log, file, url } = await cutWorld(t)
  const ran = await runRsm(['audit', 'export', '-o', file], { ...env, RSM_URL: url })
  t.is(ran.exit, 0, ran.stderr)
  t.deepEqual(readFileSync(file), readFileSync(log))
})

test('audit verify resumes after a lost connection: it reads each entry once', async (t) => {
  const { env, log, url } = await cutWorld(t)
  const entries = readFileSync(log, 'utf8').split('\n').length - 1
  const ran = await runRsm(['audit', 'verify', '--json'], { ...env, RSM_URL: url })
  t.is(ran.exit, 0, ran.stderr)
  t.is(JSON.parse(ran.stdout).entries, entries)
})

test('S11 audit verify and export report a log whose last line is incomplete, and exit with 6', async (t) => {
  const { env, log, file } = await world(t)
  const text = readFileSync(log, 'utf8')
  writeFileSync(log, `${text.slice(0, -3)}99${text.slice(-3)}`)
  for (const command of [['verify'], ['export', '-o', file]]) {
    const ran = await runRsm(['audit', ...command], env)
    t.is(ran.exit, 6)
    t.regex(ran.stderr, /the audit log is damaged: its last line is incomplete/)
  }
})
