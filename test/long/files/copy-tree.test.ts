import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { copyingAgent, done, holds, modeOf } from '../../helpers/agents/copying-agent.ts'
import { site } from '../../helpers/files/site.ts'
import { rawHeader, type TarEntry, tarOf } from '../../helpers/tar.ts'
import { until } from '../../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const kind = 'TREE'

test('a check of a tree with a missing target lists what would be written, and writes nothing', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'site')
  const file = fileRoutes.put('f1', await tarOf(site.slice(0, 4)))
  t.like(await copy({ file, path, kind, check: 'CHANGED' }), {
    ...done,
    changed: true,
    said: `${path}/index.html would be written\n${path}/css would be created\n${path}/css/main.css would be written\n`,
  })
  holds(t, directory)
})

const good: TarEntry = { name: 'good', content: 'good' }
const bad: [string, TarEntry[] | Buffer, RegExp][] = [
  [
    'an absolute name',
    [good, { name: '/etc/rsm-bad', content: 'x' }],
    /holds "\/etc\/rsm-bad": an absolute name/,
  ],
  ['.. in front', [good, { name: '../rsm-bad', content: 'x' }], /holds "\.\.\/rsm-bad": \.\. leads out/],
  [
    '.. within',
    [good, { name: 'a/../../rsm-bad', content: 'x' }],
    /holds "a\/\.\.\/\.\.\/rsm-bad": \.\. leads/,
  ],
  [
    'a hard link',
    [good, { name: 'hard', type: 'link', linkname: '/etc/passwd' }],
    /holds "hard": link; only/,
  ],
  [
    'a device',
    [good, { name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }],
    /"null": character-device/,
  ],
  [
    'a block device',
    [good, { name: 'disk', type: 'block-device', devmajor: 8 }],
    /holds "disk": block-device/,
  ],
  ['a FIFO', [good, { name: 'pipe', type: 'fifo' }], /holds "pipe": fifo/],
  ['a symlink to nothing', rawHeader('link', '2', 0), /holds "link": a symlink to nothing/],
  ['the root as a file', [good, { name: './', type: 'symlink', linkname: '/etc' }], /holds "\.\/": no name/],
  ['no tar', Buffer.alloc(2048, 'no tar '), /a damaged tar: Invalid tar header/],
  ['less data than announced', rawHeader('bomb', '0', 8 ** 11 - 1), /a damaged tar: Unexpected end/],
  [
    'a name of many MiB',
    Buffer.concat([rawHeader('PaxHeader', 'x', 64 * 1024 ** 2), Buffer.alloc(64 * 1024 ** 2, 'x')]),
    /a name of more than 4 MiB/,
  ],
  ['a name that lost bytes', rawHeader(Buffer.from([0xff]), '0', 0), /a name that is not UTF-8, without its/],
]
for (const [title, entries, message] of bad)
  test(`a tree with ${title} is refused before any of it is written`, async (t) => {
    const { fileRoutes, copy, directory } = await copyingAgent(t)
    const bytes = Buffer.isBuffer(entries) ? entries : await tarOf(entries)
    const end = await copy({ file: fileRoutes.put('f1', bytes), path: join(directory, 'tree'), kind })
    t.is(end.status, 'FAILED')
    t.regex(end.error ?? '', message)
    holds(t, directory)
    t.false(existsSync('/etc/rsm-bad'))
  })

test('no entry is written through a symlink, neither of the target nor of the tree', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const outside = join(directory, 'outside')
  const path = join(directory, 'tree')
  mkdirSync(outside)
  mkdirSync(path)
  symlinkSync(outside, join(path, 'way'))
  const through: TarEntry[] = [
    { name: 'way/file', content: 'x' },
    { name: 'own', type: 'symlink', linkname: outside },
    { name: 'own/file', content: 'x' },
  ]
  const planted = await copy({ file: fileRoutes.put('f1', await tarOf(through)), path, kind })
  t.like(planted, { status: 'FAILED' })
  t.is(planted.error, `${path}/way is a symbolic link, not a directory: cannot write to ${path}/way`)
  const own = await copy({ file: fileRoutes.put('f2', await tarOf(through.slice(1))), path, kind })
  t.regex(own.error ?? '', /tree\/own is a symbolic link, not a directory/)
  t.true(own.changed, 'the symlink itself exists by then')
  const asDirectory = await tarOf([{ name: 'way/', type: 'directory' }])
  t.regex(
    (await copy({ file: fileRoutes.put('f3', asDirectory), path, kind })).error ?? '',
    /way is a symbolic link/,
  )
  holds(t, outside)
  // The target may be a symlink only if it is written as a directory.
  const link = join(directory, 'link')
  symlinkSync(outside, link)
  const file = fileRoutes.put('f4', await tarOf([good]))
  t.regex((await copy({ file, path: link, kind })).error ?? '', /link is a symbolic link, not a directory/)
  holds(t, outside)
  t.like(await copy({ file, path: `${link}/`, kind }), done)
  holds(t, outside, 'good')
})

test('a directory in the place of a file, and the reverse, are reported', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  mkdirSync(join(directory, 'file'))
  writeFileSync(join(directory, 'dir'), '')
  const cases: [TarEntry, RegExp][] = [
    [{ name: 'file', content: 'x' }, /file is a directory, which a file cannot replace/],
    [{ name: 'dir/', type: 'directory' }, /dir is a file, not a directory/],
    [{ name: 'dir/file', content: 'x' }, /dir is a file, not a directory/],
    [{ name: 'file', type: 'symlink', linkname: 'x' }, /file is a directory, which a file cannot replace/],
    [{ name: 'n'.repeat(256), content: 'x' }, /name too long \(ENAMETOOLONG\)/],
  ]
  for (const [entry, message] of cases) {
    const end = await copy({ file: fileRoutes.put('f', await tarOf([entry])), path: directory, kind })
    t.regex(end.error ?? '', message, entry.name)
  }
  t.regex(
    (await copy({ file: fileRoutes.put('f', await tarOf([good])), path: join(directory, 'dir'), kind }))
      .error ?? '',
    /dir is a file, not a directory/,
  )
  holds(t, directory, 'dir', 'file')
})

asRoot("a tree for another user is written with that user's permissions", async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t, { runAs: 'nobody' })
  const file = fileRoutes.put('f1', await tarOf(site))
  const path = join(directory, 'site')
  t.regex((await copy({ file, path, kind })).error ?? '', /permission denied \(EACCES\)/)
  holds(t, directory)
  spawnSync('chown', ['nobody', directory])
  t.like(await copy({ file, path, kind }), { ...done, changed: true })
  t.is(statSync(join(path, 'css/main.css')).uid, statSync(directory).uid)
  t.is(lstatSync(join(path, 'current')).uid, statSync(directory).uid)
})

asRoot('new directories in a setgid directory keep setgid, also for a user outside its group', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t, { runAs: 'nobody' })
  const path = join(directory, 'shared')
  chmodSync(directory, 0o755)
  mkdirSync(path)
  chownSync(path, 0, 1234)
  chmodSync(path, 0o2777)
  const entries: TarEntry[] = [
    { name: 'sub/', type: 'directory', mode: 0o775 },
    { name: 'sub/file', content: 'x' },
  ]
  t.like(await copy({ file: fileRoutes.put('f1', await tarOf(entries)), path, kind }), done)
  t.is(modeOf(join(path, 'sub')), '2775')
  t.is(statSync(join(path, 'sub/file')).gid, 1234)
})

asRoot('a tree gets the requested owner and group, its links too', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'site')
  const file = fileRoutes.put('f1', await tarOf(site))
  t.like(await copy({ file, path, kind }), { changed: true })
  t.like(await copy({ file, path, kind, owner: '1234', group: '2345' }), { ...done, changed: true })
  for (const name of ['', 'index.html', 'css', 'css/main.css', 'current', 'implied/way/large'])
    t.like(lstatSync(join(path, name)), { uid: 1234, gid: 2345 }, name)
  t.like(await copy({ file, path, kind, owner: '1234', group: '2345' }), { changed: false })
})

test('a cancel in the middle of a tree leaves only complete files', async (t) => {
  const { server, agent, fileRoutes, directory } = await copyingAgent(t)
  const entries = Array.from({ length: 4000 }, (_, n) => ({
    name: `${n % 40}/${n}`,
    content: `${n}\n`.repeat(500),
  }))
  const path = join(directory, 'tree')
  const copy = { file: fileRoutes.put('f1', await tarOf(entries)), path, kind: 'TREE' as const }
  server.order('COPY_FILE', agent.agentId, { taskId: 'cancelled', copy })
  await until('some files exist', () => existsSync(path) && readdirSync(path).length > 1)
  server.send('CANCEL_SCRIPT', { taskId: 'cancelled' })
  t.like(await server.completed('cancelled'), { status: 'CANCELLED', changed: true })
  const found = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('/'))
  t.deepEqual(
    found.filter((name) => name.includes('.part')),
    [],
  )
  for (const name of found) {
    const n = name.split('/')[1] ?? ''
    t.is(readFileSync(join(path, name), 'utf8'), `${n}\n`.repeat(500))
  }
})

test('10,000 files that are up to date are left unchanged', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const entries = Array.from({ length: 10_000 }, (_, n) => ({
    name: `${n % 100}/${n}`,
    content: `${n}\n`.repeat(200),
  }))
  const path = join(directory, 'tree')
  for (let n = 0; n < 100; n += 1) mkdirSync(join(path, String(n)), { recursive: true })
  for (const { name, content } of entries) writeFileSync(join(path, name), content)
  const file = fileRoutes.put('f1', await tarOf(entries))
  const began = performance.now()
  t.like(await copy({ file, path, kind }), { ...done, changed: false })
  t.log(`${Math.round(performance.now() - began)} ms`)
  const source = join(directory, 'source')
  spawnSync('cp', ['-a', path, source])
  const rsync = performance.now()
  if (spawnSync('rsync', ['-rnc', `${source}/`, path]).status === 0)
    t.log(`rsync -rnc, without ssh: ${Math.round(performance.now() - rsync)} ms`)
})
