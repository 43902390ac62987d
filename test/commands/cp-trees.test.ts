import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { copyFleet } from '../helpers/agents/copy-fleet.ts'

test('cp -r makes a directory on hosts equal to the local one, and writes only files that differ', async (t) => {
  const { rsm, theirs, ours, file, there } = await copyFleet(t, 'web1', 'web2')
  file('site/index.html', 'hello\n')
  file('site/bin/run', '#!/bin/sh\n', 0o755)
  symlinkSync('index.html', join(ours, 'site/default'))
  const argv = ['cp', '-r', join(ours, 'site'), `web[1-2]:${theirs}/%h`]
  const dry = await rsm([...argv, '--dry-run'])
  t.is(dry.exit, 0, dry.stderr)
  t.regex(dry.stderr, /^rsm: 2 hosts would change$/m)
  t.deepEqual(readdirSync(theirs), [])
  const first = await rsm(argv)
  t.is(first.exit, 0, first.stderr)
  t.regex(first.stderr, /^rsm: 2 hosts changed$/m)
  for (const host of ['web1', 'web2']) {
    t.is(there(`${host}/index.html`), 'hello\n')
    t.is(statSync(join(theirs, host, 'bin/run')).mode & 0o777, 0o755)
    t.is(readlinkSync(join(theirs, host, 'default')), 'index.html')
  }
  const again = await rsm(argv)
  t.regex(again.stderr, /^rsm: no host changed$/m)
  file('site/index.html', 'good morning\n')
  const { ino } = statSync(join(theirs, 'web1/bin/run'))
  const third = await rsm(argv)
  t.is(third.exit, 0, third.stderr)
  t.is(there('web1/index.html'), 'good morning\n')
  t.is(statSync(join(theirs, 'web1/bin/run')).ino, ino)
})

test('cp -r to a path with a final slash copies the directory, or its contents if the source has one too', async (t) => {
  const { rsm, theirs, ours, file, there } = await copyFleet(t, 'web1')
  file('100% site/a', 'a')
  const named = await rsm(['cp', '-r', join(ours, '100% site'), `web1:${theirs}/`])
  t.is(named.exit, 0, named.stderr)
  t.is(there('100% site/a'), 'a')
  const within = await rsm(['cp', '-r', `${join(ours, '100% site')}/`, `web1:${theirs}/`])
  t.is(within.exit, 0, within.stderr)
  t.is(there('a'), 'a')
})

test('cp of several files and directories puts each under its name', async (t) => {
  const { rsm, theirs, ours, file, there } = await copyFleet(t, 'web1')
  const one = file('one.conf', '1')
  const two = file('deep/two.conf', '2')
  symlinkSync('one.conf', join(ours, 'link.conf'))
  const ran = await rsm(['cp', one, two, join(ours, 'link.conf'), `web1:${theirs}/conf.d`])
  t.is(ran.exit, 0, ran.stderr)
  t.is(there('conf.d/one.conf') + there('conf.d/two.conf'), '12')
  t.true(lstatSync(join(theirs, 'conf.d/link.conf')).isFile())
  const twice = await rsm(['cp', one, file('other/one.conf', ''), `web1:${theirs}/conf.d`])
  t.is(twice.exit, 2)
  t.regex(twice.stderr, /two sources have the name one\.conf/)
  const both = await rsm(['cp', '-r', one, join(ours, 'deep'), `web1:${theirs}/all/`])
  t.is(both.exit, 0, both.stderr)
  t.is(there('all/one.conf') + there('all/deep/two.conf'), '12')
})

test("cp from hosts writes each host's file to a directory of its own, and prints the path", async (t) => {
  const { rsm, theirs, ours, file } = await copyFleet(t, 'web1', 'web2')
  for (const name of ['web1', 'web2']) writeFileSync(join(theirs, `${name}.log`), `log of ${name}\n`)
  const logs = join(ours, 'new', 'logs')
  const ran = await rsm(['cp', `web[1-2]:${theirs}/%h.log`, logs])
  t.is(ran.exit, 0, ran.stderr)
  t.is(readFileSync(join(logs, 'web1', 'web1.log'), 'utf8'), 'log of web1\n')
  t.is(readFileSync(join(logs, 'web2', 'web2.log'), 'utf8'), 'log of web2\n')
  t.true(ran.stdout.includes(`web2: ${join(logs, 'web2', 'web2.log')} (12 B)`), ran.stdout)
  const json = await rsm(['cp', `web[1-2]:${theirs}/web1.log`, logs, '--json'])
  t.like(JSON.parse(json.stdout), { type: 'FETCH', status: 'SUCCESS', fetch: { kind: 'FILE' } })
  const half = await rsm(['cp', `web[1-2]:${theirs}/%h.log`, file('a-file', '')])
  t.is(half.exit, 2)
  t.regex(half.stderr, /a-file is not a directory/)
})

test('cp from hosts writes the files that exist, and fails for hosts without them', async (t) => {
  const { rsm, theirs, ours } = await copyFleet(t, 'web1', 'web2')
  writeFileSync(join(theirs, 'web1.log'), 'x')
  const ran = await rsm(['cp', `web[1-2]:${theirs}/%h.log`, ours])
  t.is(ran.exit, 1)
  t.is(readFileSync(join(ours, 'web1', 'web1.log'), 'utf8'), 'x')
  t.regex(ran.stderr, /web2: FAILED, exit 1: .*no such file/)
  t.deepEqual(readdirSync(ours), ['web1'])
})

test('cp from hosts writes all files that it can, and names a path that cannot be written', async (t) => {
  const { rsm, theirs, ours, file } = await copyFleet(t, 'web1', 'web2', 'web3')
  writeFileSync(join(theirs, 'log'), 'x')
  file('web1', 'no directory')
  const ran = await rsm(['cp', `web[1-3]:${theirs}/log`, ours])
  t.is(ran.exit, 2, ran.stderr)
  t.true(ran.stderr.includes(`can't write into ${join(ours, 'web1')}`), ran.stderr)
  for (const host of ['web2', 'web3']) t.is(readFileSync(join(ours, host, 'log'), 'utf8'), 'x')
})

test('cp from one host writes the named file, and replaces an old one only when the new one is complete', async (t) => {
  const { rsm, theirs, ours, file } = await copyFleet(t, 'web1')
  writeFileSync(join(theirs, 'hosts'), '127.0.0.1\n')
  const target = file('hosts.txt', 'old', 0o600)
  const ran = await rsm(['cp', `web1:${theirs}/hosts`, target])
  t.is(ran.exit, 0, ran.stderr)
  t.is(readFileSync(target, 'utf8'), '127.0.0.1\n')
  t.is(statSync(target).mode & 0o777, 0o600)
  t.deepEqual(readdirSync(ours), ['hosts.txt'])
  symlinkSync('hosts', join(theirs, 'link'))
  t.regex((await rsm(['cp', `web1:${theirs}/link`, target])).stderr, /is a symbolic link/)
  const followed = await rsm(['cp', '-L', `web1:${theirs}/link`, join(ours, 'followed')])
  t.is(followed.exit, 0, followed.stderr)
  t.is(readFileSync(join(ours, 'followed'), 'utf8'), '127.0.0.1\n')
})

test('cp -r from hosts writes trees, never follows local symlinks, and does not rewrite unchanged files', async (t) => {
  const { rsm, theirs, ours, file } = await copyFleet(t, 'web1')
  mkdirSync(join(theirs, 'etc/deep'), { recursive: true })
  writeFileSync(join(theirs, 'etc/deep/a.conf'), 'a')
  symlinkSync('deep/a.conf', join(theirs, 'etc/link'))
  const argv = ['cp', '-r', `web1:${theirs}/etc`, ours]
  const ran = await rsm(argv)
  t.is(ran.exit, 0, ran.stderr)
  t.is(readFileSync(join(ours, 'web1/etc/deep/a.conf'), 'utf8'), 'a')
  t.is(readlinkSync(join(ours, 'web1/etc/link')), 'deep/a.conf')
  const { ino } = statSync(join(ours, 'web1/etc/deep/a.conf'))
  t.is((await rsm(argv)).exit, 0)
  t.is(statSync(join(ours, 'web1/etc/deep/a.conf')).ino, ino)
  const outside = file('outside/kept', 'kept')
  rmSync(join(ours, 'web1/etc/deep'), { recursive: true })
  symlinkSync(join(ours, 'outside'), join(ours, 'web1/etc/deep'))
  const through = await rsm(argv)
  t.is(through.exit, 2)
  t.regex(through.stderr, /deep is a symbolic link, not a directory/)
  t.deepEqual(readdirSync(join(outside, '..')), ['kept'])
  t.deepEqual(
    readdirSync(join(ours, 'web1')).filter((name) => name.endsWith('.part')),
    [],
  )
})
