import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  linkSync,
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
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user, and mount.

test('a file is written whole, with the mode of its source, and left untouched if it already matches', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  const file = fileRoutes.put('f1', 'one\n')
  t.like(await copy({ file, path, sourceMode: '4751' }), {
    ...done,
    changed: true,
    error: `${path}: copied without setuid and setgid, which only --mode or chmod sets`,
    said: `${path} written\n`,
  })
  t.is(readFileSync(path, 'utf8'), 'one\n')
  t.is(modeOf(path), '751')
  const { ino, mtimeMs } = statSync(path)
  t.like(await copy({ file, path, sourceMode: '0600' }), { ...done, changed: false, said: '' })
  t.like(statSync(path), { ino, mtimeMs })
  t.is(fileRoutes.requests.length, 1)
  t.is(fileRoutes.requests[0]?.token, 'Bearer rsm_agt_test')
  holds(t, directory, 'file')
})

test('a replaced file keeps its mode unless another is requested, and is backed up on request', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  writeFileSync(path, 'old')
  chmodSync(path, 0o640)
  t.like(await copy({ file: fileRoutes.put('f1', 'new'), path, sourceMode: '0777' }), {
    ...done,
    changed: true,
  })
  t.is(modeOf(path), '640')
  t.like(await copy({ file: fileRoutes.put('f2', 'newer'), path, mode: '0604', backup: true }), {
    ...done,
    changed: true,
  })
  t.is(modeOf(path), '604')
  t.is(readFileSync(join(directory, 'file.rsm-copy-2'), 'utf8'), 'new')
  holds(t, directory, 'file', 'file.rsm-copy-2')
  const { ino } = statSync(path)
  t.like(await copy({ file: fileRoutes.put('f2', 'newer'), path, mode: '0600' }), { ...done, changed: true })
  t.is(modeOf(path), '600')
  t.is(statSync(path).ino, ino, 'matching content is not rewritten')
  const long = `${'ä'.repeat(126)}.x`
  writeFileSync(join(directory, long), 'old')
  t.like(await copy({ file: fileRoutes.put('f3', 'x'), path: join(directory, long), backup: true }), done)
  t.true(readdirSync(directory).includes(`${'ä'.repeat(122)}.rsm-copy-4`))
})

test('a check writes nothing and reports whether something would change, and how', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  const file = fileRoutes.put('f1', 'a\nB\nc\n')
  t.like(await copy({ file, path, check: 'CHANGED' }), {
    ...done,
    changed: true,
    said: `${path} would be written\n`,
  })
  holds(t, directory)
  writeFileSync(path, 'a\nb\nc\n')
  chmodSync(path, 0o600)
  const { ino, mtimeMs } = statSync(path)
  const requests = fileRoutes.requests.length
  t.like(await copy({ file, path, check: 'CHANGED', mode: '0644' }), {
    ...done,
    changed: true,
    said: `${path} would be replaced\nmode of ${path}: 0600 to 0644\n`,
  })
  t.is(fileRoutes.requests.length, requests, 'content that is not shown is not fetched')
  const { said, changed } = await copy({ file, path, check: 'DIFF' })
  t.true(changed)
  t.is(said, `--- ${path}\n+++ ${path}\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n`)
  t.like(await copy({ file: fileRoutes.put('f2', 'a\nb\nc\n'), path, check: 'DIFF' }), {
    changed: false,
    said: '',
  })
  t.like(await copy({ file: fileRoutes.put('f3', 'a\0b'), path, check: 'DIFF' }), {
    said: `${path} would change; it is not text\n`,
  })
  t.like(await copy({ file: fileRoutes.put('f4', 'x'.repeat(1024 ** 2 + 1)), path, check: 'DIFF' }), {
    said: `${path} would change; more than 1 MiB is not shown\n`,
  })
  t.like(statSync(path), { ino, mtimeMs })
  holds(t, directory, 'file')
})

test('a copy to an unusable path fails with the system’s error, and leaves nothing behind', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const file = fileRoutes.put('f1', 'text')
  mkdirSync(join(directory, 'dir'))
  spawnSync('mkfifo', [join(directory, 'fifo')])
  const cases: [string, RegExp][] = [
    ['dir', /dir is a directory, which a file cannot replace$/],
    ['dir/', /dir\/ names a directory, not a file$/],
    ['fifo', /fifo is a FIFO, which a file cannot replace$/],
    ['no/such', /^open \/.*\/no: no such file or directory \(ENOENT\)$/],
    ['n'.repeat(256), /^stat .*: name too long \(ENAMETOOLONG\)$/],
  ]
  for (const [name, message] of cases) {
    const end = await copy({ file, path: `${directory}/${name}` })
    t.is(end.status, 'FAILED', name)
    t.regex(end.error ?? '', message)
    t.not(end.changed, true)
  }
  t.regex((await copy({ file, path: '/proc/file' })).error ?? '', /^write in \/proc as \S+: .* \(E[A-Z]+\)/)
  for (const [desired, message] of [
    [{ owner: 'no-such-user' }, 'there is no user no-such-user on this host'],
    [{ group: 'no-such-group' }, 'there is no group no-such-group on this host'],
  ] as const)
    t.like(await copy({ file, path: join(directory, 'x'), ...desired }), {
      status: 'FAILED',
      exitCode: 126,
      error: message,
    })
  holds(t, directory, 'dir', 'fifo')
  t.is(fileRoutes.requests.length, 0)
})

test('content that differs from the signed order, or is missing, changes nothing', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  writeFileSync(path, 'old')
  const file = fileRoutes.put('f1', 'text')
  fileRoutes.files.set('f1', Buffer.from('TEXT'))
  t.regex((await copy({ file, path })).error ?? '', /has sha256 [0-9a-f]{64}, not [0-9a-f]{64} as signed/)
  fileRoutes.files.set('f1', Buffer.from('text and more'))
  t.regex((await copy({ file, path })).error ?? '', /sends more than the 4 bytes of the file f1/)
  t.regex(
    (await copy({ file: { ...file, fileId: 'none' }, path })).error ?? '',
    /answered 404 .*no task running on this host/,
  )
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a symlink at the path is replaced, not followed; a second hard link keeps the old file', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  const other = join(directory, 'other')
  writeFileSync(other, 'secret', { mode: 0o600 })
  symlinkSync(other, path)
  t.like(await copy({ file: fileRoutes.put('f1', 'text'), path }), { ...done, changed: true })
  t.true(lstatSync(path).isFile())
  t.is(modeOf(path), '644')
  const second = join(directory, 'second')
  linkSync(other, second)
  t.like(await copy({ file: fileRoutes.put('f2', 'secret'), path: second, mode: '0666' }), {
    ...done,
    changed: true,
  })
  t.is(modeOf(second), '666')
  t.is(modeOf(other), '600')
  t.is(readFileSync(other, 'utf8'), 'secret')
})

asRoot('a copy as another user has only that user’s rights, and creates files of that user', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t, {
    runAs: 'nobody',
    allowRunAs: ['daemon'],
  })
  const file = fileRoutes.put('f1', 'text')
  const refused = await copy({ file, path })
  t.like(refused, { status: 'FAILED', exitCode: 1 })
  t.regex(refused.error ?? '', /^open \/.*: permission denied \(EACCES\)$/)
  chmodSync(directory, 0o1777)
  t.like(await copy({ file, path }), { ...done, changed: true })
  const nobodyId = Number(spawnSync('id', ['-u', 'nobody']).stdout.toString())
  t.is(statSync(path).uid, nobodyId)
  // Sticky bit: another user’s file is not replaced.
  const other = await copy({ file: fileRoutes.put('f2', 'other'), path }, 'daemon')
  t.like(other, { status: 'FAILED' })
  t.regex(other.error ?? '', /^replace .* as daemon: it belongs to another user, .*the sticky bit \(EPERM\)$/)
  t.regex((await copy({ file, path, owner: 'root' })).error ?? '', /may not give it to/)
  t.is(readFileSync(path, 'utf8'), 'text')
  holds(t, directory, 'file')
  const shadow = await copy({ file, path: '/etc/shadow', check: 'DIFF' })
  t.notRegex(`${shadow.said}${shadow.error}`, /root:/)
})

asRoot('owner and group are the requested ones, or those of the replaced file', async (t) => {
  const { fileRoutes, copy, path } = await copyingAgent(t)
  writeFileSync(path, 'old')
  chownSync(path, 1234, 2345)
  t.like(await copy({ file: fileRoutes.put('f1', 'new'), path }), { ...done, changed: true })
  t.like(statSync(path), { uid: 1234, gid: 2345 })
  t.like(
    await copy({ file: fileRoutes.put('f1', 'new'), path, owner: 'daemon', group: '77', mode: '4750' }),
    {
      changed: true,
    },
  )
  const daemon = Number(spawnSync('id', ['-u', 'daemon']).stdout.toString())
  t.like(statSync(path), { uid: daemon, gid: 77 })
  t.is(modeOf(path), '4750')
})

asRoot('a full disk and a read-only file system are reported, and nothing stays behind', async (t) => {
  const { fileRoutes, copy } = await copyingAgent(t)
  const disk = mountSmallDisk(256 * 1024)
  if (disk === null) return t.pass('nothing may be mounted here')
  t.teardown(() => disk.unmount())
  const path = join(disk.directory, 'file')
  writeFileSync(path, 'old')
  const full = await copy({ file: fileRoutes.put('f1', Buffer.alloc(1024 ** 2)), path })
  t.like(full, { status: 'FAILED', exitCode: 1 })
  t.regex(full.error ?? '', /^write \/.*: no space left on device \(ENOSPC\)$/)
  holds(t, disk.directory, 'file')
  spawnSync('mount', ['-o', 'remount,ro', disk.directory])
  const readOnly = await copy({ file: fileRoutes.put('f2', 'new'), path })
  t.regex(readOnly.error ?? '', /^write \/.*\/file: read-only file system \(EROFS\)$/)
  t.is(readFileSync(path, 'utf8'), 'old')
  return undefined
})
