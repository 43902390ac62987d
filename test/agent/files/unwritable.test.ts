import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { copyingAgent, done, holds } from '../../helpers/agents/copying-agent.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { tarOf } from '../../helpers/tar.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user, and mount.

const run = (program: string, ...argv: string[]) => spawnSync(program, argv).status === 0

type Copy = Awaited<ReturnType<typeof copyingAgent>>['copy']

/** Asserts that a copy and its check fail with the same error. */
async function bothSay(
  t: ExecutionContext,
  copy: Copy,
  order: Parameters<Copy>[0],
  sentence: RegExp,
  runAs?: string,
): Promise<void> {
  const ends = await Promise.all([copy({ ...order, check: 'CHANGED' }, runAs), copy(order, runAs)])
  for (const end of ends) {
    t.like(end, { status: 'FAILED', exitCode: 1 }, `${sentence}`)
    t.regex(end.error ?? '', sentence)
    t.not(end.changed, true)
  }
  t.is(ends[0]?.error, ends[1]?.error)
}

asRoot('a check and a copy name the directory that a user may not write in, and the user', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t, { allowRunAs: ['nobody'] })
  const file = fileRoutes.put('f1', 'new')
  const kind = 'TREE'
  const tree = fileRoutes.put('f2', await tarOf([{ name: 'new/deep/file', content: 'x' }]))
  chmodSync(directory, 0o755)
  const refused = new RegExp(`^write in ${directory} as nobody: permission denied \\(EACCES\\)`)
  await bothSay(t, copy, { file, path }, new RegExp(`${refused.source}$`), 'nobody')
  await bothSay(t, copy, { file: tree, path: directory, kind }, refused, 'nobody')
  await bothSay(t, copy, { file: tree, path: join(directory, 'root'), kind }, refused, 'nobody')
  const link = fileRoutes.put('f3', await tarOf([{ name: 'link', type: 'symlink', linkname: 'x' }]))
  await bothSay(t, copy, { file: link, path: directory, kind }, refused, 'nobody')
  holds(t, directory)
})

asRoot('a check and a copy of a tree name an owner that the user may not set', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t, { allowRunAs: ['nobody'] })
  chmodSync(directory, 0o777)
  const path = join(directory, 'site')
  const order = { kind: 'TREE' as const, owner: 'daemon' }
  const link = fileRoutes.put('f1', await tarOf([{ name: 'link', type: 'symlink', linkname: 'x' }]))
  const refused = (name: string) =>
    new RegExp(`^chown ${name}: \\S+ may not give it to \\d+:\\d+ \\(EPERM\\)$`)
  mkdirSync(path, { mode: 0o777 })
  chmodSync(path, 0o777)
  await bothSay(t, copy, { ...order, file: link, path }, refused(`${path}/link`), 'nobody')
  const root = fileRoutes.put('f2', await tarOf([{ name: './', type: 'directory' }]))
  await bothSay(t, copy, { ...order, file: root, path }, refused(path), 'nobody')
  holds(t, path)
})

asRoot('a check and a copy name a file that the user may not replace or chown', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t, { allowRunAs: ['nobody'] })
  const file = fileRoutes.put('f1', 'new')
  const same = { file: fileRoutes.put('f2', 'old'), path, mode: '0600' }
  writeFileSync(path, 'old')
  chmodSync(path, 0o666)
  chmodSync(directory, 0o755)
  await bothSay(t, copy, { file, path }, /replaced by a new one .* rsm exec --stdin FILE/, 'nobody')
  await bothSay(t, copy, same, /^chmod .*\/file: nobody does not own it \(EPERM\)$/, 'nobody')
  chmodSync(directory, 0o777)
  await bothSay(
    t,
    copy,
    { file, path },
    /^chown .*\/file: nobody may not give it to 0:0 \(EPERM\)$/,
    'nobody',
  )
  chmodSync(directory, 0o1777)
  await bothSay(t, copy, { file, path }, /^replace .* as nobody: .* the sticky bit \(EPERM\)$/, 'nobody')
  chownSync(path, 65534, 65534)
  t.like(await copy({ file, path, check: 'CHANGED' }, 'nobody'), { ...done, changed: true })
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a file does not replace a symlink to a directory, and the error shows how to write into it', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const releases = join(directory, 'releases')
  const current = join(directory, 'current')
  mkdirSync(releases)
  symlinkSync('releases', current)
  const file = fileRoutes.put('f1', 'text')
  const refused = /current is a symbolic link to a directory, .*: \/.*\/current\/$/
  await bothSay(t, copy, { file, path: current }, refused)
  const tree = fileRoutes.put('f2', await tarOf([{ name: 'current', content: 'x' }]))
  await bothSay(t, copy, { file: tree, path: directory, kind: 'TREE' }, refused)
  const next = fileRoutes.put('f3', await tarOf([{ name: 'current', type: 'symlink', linkname: 'next' }]))
  t.like(await copy({ file, path: join(current, 'file') }), done)
  holds(t, releases, 'file')
  t.true(lstatSync(current).isSymbolicLink())
  t.like(await copy({ file: next, path: directory, kind: 'TREE' }), { ...done, changed: true })
  t.is(readlinkSync(current), 'next')
  t.like(await copy({ file, path: current }), { ...done, changed: true }, 'a dangling link is replaced')
})

asRoot('a check and a copy name a file that is a mount point, and how to write into it', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'a b\\c')
  writeFileSync(path, 'old')
  if (!run('mount', '--bind', path, path)) return t.pass('nothing may be mounted here')
  t.teardown(() => run('umount', path))
  const sentence = /a b\\c is a mount point, .*\(EBUSY\); .*rsm exec --stdin FILE -- 'cat > PATH'$/
  await bothSay(t, copy, { file: fileRoutes.put('f1', 'new'), path }, sentence)
  const tree = fileRoutes.put('f2', await tarOf([{ name: 'a b\\c', content: 'new' }]))
  await bothSay(t, copy, { file: tree, path: directory, kind: 'TREE' }, sentence)
  t.like(await copy({ file: fileRoutes.put('f3', 'old'), path }), { ...done, changed: false })
  t.like(await copy({ file: fileRoutes.put('f4', 'old'), path, mode: '0600' }), { ...done, changed: true })
  holds(t, directory, 'a b\\c')
  return undefined
})

asRoot('a check and a copy name an immutable file and a read-only file system', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  const file = fileRoutes.put('f1', 'new')
  writeFileSync(path, 'old')
  if (run('chattr', '+i', path)) {
    t.teardown(() => run('chattr', '-i', path))
    const immutable = /^\/.*\/file is immutable \(EPERM\)/
    await bothSay(t, copy, { file, path }, immutable)
    await bothSay(t, copy, { file: fileRoutes.put('f2', 'old'), path, mode: '0600' }, immutable)
    t.like(await copy({ file: fileRoutes.put('f3', 'old'), path }), { ...done, changed: false })
    run('chattr', '-i', path)
    run('chattr', '+i', directory)
    t.teardown(() => run('chattr', '-i', directory))
    await bothSay(t, copy, { file, path }, /^write in \/\S+ as root: .*\(EPERM\); is it immutable/)
    run('chattr', '-i', directory)
    holds(t, directory, 'file')
  }
  const disk = mountSmallDisk(256 * 1024)
  if (disk === null) return t.pass('nothing may be mounted here')
  t.teardown(() => disk.unmount())
  writeFileSync(join(disk.directory, 'file'), 'old')
  run('mount', '-o', 'remount,ro', disk.directory)
  for (const name of ['file', 'new'])
    await bothSay(
      t,
      copy,
      { file, path: join(disk.directory, name) },
      /^write .*: read-only file system \(EROFS\)$/,
    )
  return undefined
})
