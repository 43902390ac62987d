import { chmodSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { copyingAgent, done, holds, modeOf } from '../../helpers/agents/copying-agent.ts'
import { large, long, site } from '../../helpers/files/site.ts'
import { type TarEntry, tarOf } from '../../helpers/tar.ts'

const kind = 'TREE'

test('a tree is written as in its tar, and left untouched where it already matches', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'site')
  const file = fileRoutes.put('f1', await tarOf(site))
  t.like(await copy({ file, path, kind }), { ...done, changed: true })
  const at = (name: string) => join(path, name)
  holds(t, path, 'closed', 'css', 'current', 'empty', 'implied', 'index.html', 'outside', 'ünï')
  t.is(readFileSync(at('index.html'), 'utf8'), '<p>one\n')
  t.is(modeOf(at('index.html')), '640')
  t.is(modeOf(at('css')), '750')
  t.is(modeOf(at('css/main.css')), '755')
  t.is(modeOf(at('closed')), '555')
  t.is(modeOf(at('implied')), '755')
  t.deepEqual(readdirSync(at('empty')), [])
  t.is(readlinkSync(at('current')), 'css/main.css')
  t.is(readlinkSync(at('outside')), '/etc/hostname')
  t.true(readFileSync(at('implied/way/large')).equals(large))
  t.is(readFileSync(at(`ünï/${long}`), 'utf8'), 'long')
  const { ino, mtimeMs } = statSync(at('index.html'))
  t.like(await copy({ file, path, kind }), { ...done, changed: false, said: '' })
  t.like(statSync(at('index.html')), { ino, mtimeMs })
  chmodSync(at('index.html'), 0o600)
  t.like(await copy({ file, path, kind }), { changed: false }, 'an existing file keeps its mode')
  t.like(await copy({ file, path, kind, mode: '0644' }), { changed: true })
  t.is(modeOf(at('index.html')), '644')
  t.is(modeOf(at('css')), '750')
})

test('a copy replaces only files of a tree that differ, each one whole, and keeps backups on request', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'site')
  await copy({ file: fileRoutes.put('f1', await tarOf(site)), path, kind })
  const kept = statSync(join(path, 'css/main.css')).ino
  const changedLarge = Buffer.from(large)
  changedLarge[2_999_999] = 33
  const next = site.map((entry) => {
    if (entry.name === 'index.html') return { ...entry, content: '<p>two\n' }
    if (entry.name === 'implied/way/large') return { ...entry, content: changedLarge }
    return entry.name === 'current' ? { ...entry, linkname: 'index.html' } : entry
  })
  const file = fileRoutes.put('f2', await tarOf(next))
  const would = await copy({ file, path, kind, check: 'DIFF' })
  t.true(would.changed)
  t.is(
    would.said,
    `--- ${path}/index.html\n+++ ${path}/index.html\n@@ -1,1 +1,1 @@\n-<p>one\n+<p>two\n` +
      `${path}/current would be replaced\n${path}/implied/way/large would change; more than 1 MiB is not shown\n`,
  )
  t.is(readFileSync(join(path, 'index.html'), 'utf8'), '<p>one\n')
  const { said } = await copy({ file, path, kind, backup: true })
  t.is(
    said,
    ['index.html', 'current', 'implied/way/large'].map((name) => `${path}/${name} replaced\n`).join(''),
  )
  t.is(readFileSync(join(path, 'index.html.rsm-copy-3'), 'utf8'), '<p>one\n')
  t.true(readFileSync(join(path, 'implied/way/large')).equals(changedLarge))
  t.is(readlinkSync(join(path, 'current')), 'index.html')
  t.is(statSync(join(path, 'css/main.css')).ino, kept)
})

test('a tree with .. in a name is refused before anything is written', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const entries = [
    { name: 'good', content: 'good' },
    { name: 'a/../../rsm-bad', content: 'x' },
  ]
  const file = fileRoutes.put('f1', await tarOf(entries))
  const end = await copy({ file, path: join(directory, 'tree'), kind })
  t.is(end.status, 'FAILED')
  t.regex(end.error ?? '', /holds "a\/\.\.\/\.\.\/rsm-bad": \.\. leads/)
  holds(t, directory)
})

test('a tree of more than 1,000 nested directories is refused before anything is written', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const entries = [
    { name: 'good', content: 'good' },
    { name: `${'a/'.repeat(1000)}b`, content: 'x' },
  ]
  const file = fileRoutes.put('f1', await tarOf(entries))
  const end = await copy({ file, path: join(directory, 'tree'), kind })
  t.is(end.status, 'FAILED')
  t.regex(end.error ?? '', /more than 1000 directories deep$/)
  holds(t, directory)
})

test('A19 a directory keeps its sticky bit and setgid, and setgid inherited from its parent', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const entries: TarEntry[] = [
    { name: './', type: 'directory', mode: 0o755 },
    { name: 'tmp/', type: 'directory', mode: 0o1777 },
    { name: 'shared/', type: 'directory', mode: 0o2770 },
    { name: 'plain/', type: 'directory', mode: 0o775 },
    { name: 'implied/file', content: 'x', mode: 0o664 },
  ]
  const file = fileRoutes.put('f1', await tarOf(entries))
  const one = join(directory, 'one')
  t.like(await copy({ file, path: one, kind }), done)
  const modes = (path: string) =>
    ['', 'tmp', 'shared', 'plain', 'implied'].map((name) => modeOf(join(path, name)))
  t.deepEqual(modes(one), ['755', '1777', '2770', '775', '755'])
  chmodSync(directory, 0o2755)
  const two = join(directory, 'two')
  t.like(await copy({ file, path: two, kind }), done)
  t.deepEqual(modes(two), ['2755', '3777', '2770', '2775', '2755'])
  t.is(modeOf(join(two, 'implied/file')), '664')
})

test('a file arrives without setuid and setgid, with a note in the result, unless a mode is requested', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'tree')
  const bytes = await tarOf(['a', 'b'].map((name) => ({ name, content: name, mode: 0o6755 })))
  const file = fileRoutes.put('f1', bytes)
  const told = (...paths: string[]) => ({
    ...done,
    error: `${paths.join(', ')}: copied without setuid and setgid, which only --mode or chmod sets`,
  })
  t.like(await copy({ file, path, kind, check: 'CHANGED' }), told(join(path, 'a'), join(path, 'b')))
  t.like(await copy({ file, path, kind }), told(join(path, 'a'), join(path, 'b')))
  t.is(modeOf(join(path, 'a')), '755')
  t.like(await copy({ file, path, kind }), { ...done, changed: false })
  t.like(await copy({ file, path, kind, mode: '4755' }), done)
  t.is(modeOf(join(path, 'a')), '4755')
  const single = fileRoutes.put('f2', 'x')
  t.like(
    await copy({ file: single, path: join(directory, 'one'), sourceMode: '4750' }),
    told(join(directory, 'one')),
  )
  t.is(modeOf(join(directory, 'one')), '750')
})
