import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import { extract, type Headers, pack } from 'tar-stream'
import { backupOffline, restore } from '../../../src/server/app/offline.ts'
import { Sums } from '../../../src/server/storage/backup/format.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

interface File {
  header: Headers
  bytes: Buffer
}

/** A backup of a small server, and the directory to restore it to. */
async function made(t: ExecutionContext) {
  const server = await startTestServer(t)
  for (let n = 0; n < 20; n++) {
    const content = randomBytes(300).toString('hex')
    await server.data('POST', '/api/scripts', { name: `s${n}`, type: 'BASH', content })
  }
  await server.stop()
  const { stream } = await backupOffline(server.dataDir, undefined, { withOutput: true })
  const home = temporaryDirectory(t)
  const target = join(home, 'restored')
  return { server, home, target, backup: await buffer(stream) }
}

/** Restores bytes that must be refused and leave no file. */
async function refused(
  t: ExecutionContext,
  home: string,
  bytes: Buffer,
): Promise<{ message: string; code?: string }> {
  const target = join(home, 'restored')
  const chunks = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, at) =>
    bytes.subarray(at * 1000, (at + 1) * 1000),
  )
  const error = await t.throwsAsync(restore(Readable.from(chunks), target, undefined))
  t.deepEqual(await readdir(home), [])
  return error
}

async function filesOf(backup: Buffer): Promise<File[]> {
  const files: File[] = []
  const entries = extract()
  entries.end(gunzipSync(backup))
  for await (const entry of entries) files.push({ header: entry.header, bytes: await buffer(entry) })
  return files
}

async function packed(files: readonly File[]): Promise<Buffer> {
  const out = pack()
  for (const { header, bytes } of files)
    out.entry({ ...header, size: header.type === 'file' ? bytes.length : 0 }, bytes)
  out.finalize()
  return gzipSync(await buffer(Readable.from(out)))
}

const file = (name: string, text: string): File => ({
  header: { name, type: 'file', mode: 0o600 },
  bytes: Buffer.from(text),
})

/** Whether both have the same content: some bits of a deflate stream, such as the padding of its last byte, are unused (RFC 1951 §3.2). */
function holdsTheSame(altered: Buffer, plain: Buffer): boolean {
  try {
    return gunzipSync(altered).equals(plain)
  } catch {
    return false
  }
}

/** The files with changes to the JSON of one. */
const changed = (files: File[], name: string, change: object): File[] =>
  files.map((each) => {
    if (each.header.name !== name) return each
    const value = { ...JSON.parse(each.bytes.toString()), ...change }
    return { ...each, bytes: Buffer.from(JSON.stringify(value)) }
  })

/** A forged backup: without its audit log, with added entries, and with matching checksums. */
function resummed(files: readonly File[], added: readonly File[]): File[] {
  const kept = files.filter(({ header }) => !/^(sums\/.*|end\.json|audit\/.*)$/.test(header.name))
  const parts = [...kept, ...added]
  const sums = new Sums()
  for (const { header, bytes } of parts) sums.add(header.name, bytes)
  const [name, text] = sums.next()
  const end = JSON.stringify({ ...sums.end(), damaged: [] })
  return [...parts, file(name, text), file('end.json', end)]
}

test('a backup cut anywhere is refused as cut off, and leaves no file', async (t) => {
  const { home, backup } = await made(t)
  for (const part of [0, 1, 2, 3]) {
    const { message } = await refused(t, home, backup.subarray(0, Math.floor((backup.length * part) / 4)))
    t.regex(message, /the backup is (cut off|empty, or not a backup of rsm)$/)
  }
  t.regex((await refused(t, home, backup.subarray(0, -1))).message, /the backup is cut off$/)
  const files = await filesOf(backup)
  t.regex((await refused(t, home, await packed(files.slice(0, -1)))).message, /is cut off$/)
})

test('a backup with one changed bit is refused if the bit changes its content', async (t) => {
  const { home, backup } = await made(t)
  const plain = gunzipSync(backup)
  let tried = 0
  // The first ten bytes are the gzip header, whose time and system are not read.
  for (let at = 10; at < backup.length; at += Math.ceil(backup.length / 40)) {
    const altered = Buffer.from(backup)
    altered[at] = (altered[at] ?? 0) ^ (1 << (at % 8))
    if (holdsTheSame(altered, plain)) continue
    tried += 1
    t.regex((await refused(t, home, altered)).message, /^the backup is/, `byte ${at}`)
  }
  t.true(tried >= 30)
})

test('a changed, missing, added or moved file is named, although gzip and tar are valid', async (t) => {
  const { home, backup } = await made(t)
  const files = await filesOf(backup)
  const at = files.findIndex(({ header }) => header.name === 'records/000001')
  const records = files[at] as File
  const bytes = Buffer.from(records.bytes.toString('latin1').replace('s1', 's2'), 'latin1')
  const cases: [File[], RegExp][] = [
    [files.with(at, { ...records, bytes }), /is damaged: records\/000001 does not match/],
    [files.toSpliced(at, 1), /is damaged/],
    [[...files, file('audit/000002', 'x')], /is damaged: audit\/000002 follows its end/],
    [files.toSpliced(at + 1, 0, file('records/000002', 'x')), /is damaged: records\/000002 does not match/],
    [files.slice(1), /is not a backup of rsm: it begins with clock\.json/],
    [changed(files, 'end.json', { files: 1 }), /its end does not match/],
    [
      resummed(
        files.filter(({ header }) => header.name !== 'identity/000001'),
        [],
      ),
      /does not name its store/,
    ],
    [
      changed(files, 'rsm-backup.json', { storeId: 'another' }),
      /rsm-backup\.json does not match its checksum/,
    ],
    [changed(files, 'rsm-backup.json', { sequence: 7 }), /rsm-backup\.json does not match its checksum/],
  ]
  for (const [altered, message] of cases)
    t.regex((await refused(t, home, await packed(altered))).message, message)
})

test('a backup of another rsm version is reported as newer or older, not as damaged', async (t) => {
  const { home, backup } = await made(t)
  const files = await filesOf(backup)
  const cases: [object, RegExp][] = [
    [
      { format: 3 },
      /^the backup was made by a newer rsm \(9\.0\.0: backup format 3; this version reads up to 2\)/,
    ],
    [
      { nouns: ['moons'] },
      /^the backup was made by a newer rsm \(9\.0\.0: it has records of an unknown kind: moons\)/,
    ],
    [{ format: 1 }, /^the backup was made by an older rsm \(9\.0\.0: backup format 1\)/],
  ]
  for (const [change, says] of cases) {
    const other = resummed(changed(files, 'rsm-backup.json', { ...change, version: '9.0.0' }), [])
    t.regex((await refused(t, home, await packed(other))).message, says)
  }
})

test('a backup can create only regular files, and only within the directory', async (t) => {
  const { home, backup } = await made(t)
  const files = await filesOf(backup)
  const names = ['../outside', '/outside', 'store/../../outside', 'output/../x', 'store/x', 'keys/seal.key']
  for (const name of names) {
    const { message } = await refused(t, home, await packed(files.toSpliced(1, 0, file(name, 'x'))))
    t.regex(message, /which is not a file of a server$/, name)
  }
  const outside = '../outside'
  const items: [string, object][] = [
    ...[outside, '/outside', 'x'.repeat(65)].map((id): [string, object] => ['output', { id, bytes: 1 }]),
    ['output', { taskId: 'x', id: outside, bytes: 1 }],
    ['output', { id: outside }],
    ['results', { taskId: outside, id: 'x' }],
    ['versions', { id: `../${outside}`, version: 1 }],
    ['versions', { id: 1, version: `../${outside}` }],
    ['files', { id: 'x', bytes: 1, isComplete: true, content: `../../${outside}` }],
  ]
  for (const [kind, item] of items) {
    const part = file(`${kind}/000001`, `${JSON.stringify(item)}\nx`)
    t.regex(
      (await refused(t, home, await packed(resummed(files, [part])))).message,
      /which is not an id of a server$/,
      JSON.stringify(item),
    )
  }
  const link: File = {
    header: { name: 'clock.json', type: 'symlink', linkname: '/etc/passwd' },
    bytes: Buffer.alloc(0),
  }
  t.regex(
    (await refused(t, home, await packed(files.toSpliced(1, 0, link)))).message,
    /not a file \(symlink\)/,
  )
  t.false(existsSync(join(home, '..', 'outside')))
})

test('a restore refuses a non-empty directory and that of a running server, and accepts an empty one', async (t) => {
  const { server, home, target, backup } = await made(t)
  await server.restart()
  const into = (path: string) => restore(Readable.from([backup]), path, undefined)
  await t.throwsAsync(into(server.dataDir), {
    code: 'conflict',
    message: /is the data directory of a server/,
  })
  mkdirSync(target)
  await writeFile(join(target, 'notes'), 'mine')
  await t.throwsAsync(into(target), { code: 'conflict', message: /is not empty: it holds notes/ })
  await t.throwsAsync(into(join(target, 'notes')), { code: 'conflict', message: /is not a directory/ })
  t.is(await readFile(join(target, 'notes'), 'utf8'), 'mine')
  t.deepEqual(await readdir(home), ['restored'])
  mkdirSync(join(home, 'empty'))
  await into(join(home, 'empty'))
  t.true(existsSync(join(home, 'empty', 'store', 'store.json')))
})

test('a backup with the keys of another store fails', async (t) => {
  const { server, home } = await made(t)
  const keys = join(home, 'keys')
  await cp(join(server.dataDir, 'keys'), keys, { recursive: true })
  await writeFile(join(keys, 'seal.key'), randomBytes(32))
  const options = { withOutput: true, passphrase: 'a passphrase for tests' }
  const { stream } = await backupOffline(server.dataDir, keys, options)
  await t.throwsAsync(buffer(stream), {
    code: 'conflict',
    message: /keys\/seal\.key is damaged, or is the key of another store$/,
  })
  t.true((await buffer((await backupOffline(server.dataDir, undefined, options)).stream)).length > 0)
})

test('a file that is not a backup is reported as such', async (t) => {
  const home = temporaryDirectory(t)
  t.regex(
    (await refused(t, home, Buffer.from('hello, world'.repeat(99)))).message,
    /is damaged|not a backup of rsm/,
  )
  t.regex((await refused(t, home, gzipSync('hello'))).message, /^the backup is/)
  t.regex(
    (await refused(t, home, await packed([file('hello', 'x')]))).message,
    /is not a backup of rsm: it begins with hello/,
  )
})
