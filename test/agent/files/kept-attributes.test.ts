import { spawnSync } from 'node:child_process'
import { chmodSync, linkSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { copyingAgent, done, modeOf } from '../../helpers/agents/copying-agent.ts'
import { tarOf } from '../../helpers/tar.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user, and give capabilities.

const run = (program: string, ...argv: string[]) => spawnSync(program, argv, { encoding: 'utf8' })

/** Gives a file an ACL, an extended attribute and, as root, a capability; false if this machine lacks one of them. */
function dress(path: string, capability = isRoot): boolean {
  return [
    run('setfacl', '-m', 'u:daemon:r', path),
    run('setfattr', '-n', 'user.kept', '-v', 'yes', path),
    ...(capability ? [run('setcap', 'cap_net_bind_service+ep', path)] : []),
  ].every(({ status }) => status === 0)
}

/** ACL, extended attributes and capabilities of a file. */
const dressOf = (path: string) => run('getfattr', '-d', '-m', '-', '--absolute-names', path).stdout

test('a replaced file keeps its ACL, extended attributes and capabilities', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  writeFileSync(path, 'old')
  chmodSync(path, 0o640)
  if (!dress(path)) return t.pass('this machine has no such attributes')
  const before = dressOf(path)
  t.regex(before, /posix_acl_access[^]*user\.kept="yes"/)
  t.like(await copy({ file: fileRoutes.put('f1', 'new'), path, backup: true }), {
    ...done,
    said: `${path} replaced\n`,
  })
  t.is(readFileSync(path, 'utf8'), 'new')
  t.is(dressOf(path), before)
  t.is(modeOf(path), '640')
  linkSync(path, join(directory, 'second'))
  t.like(await copy({ file: fileRoutes.put('f2', 'new'), path, mode: '0604' }), { ...done, changed: true })
  t.regex(dressOf(path), /user\.kept="yes"/)
  t.is(modeOf(path), '604')
  return undefined
})

test('a replaced file without an ACL does not get the default ACL of its directory', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t)
  writeFileSync(path, 'old')
  if (run('setfacl', '-d', '-m', 'u:daemon:rw', directory).status !== 0)
    return t.pass('this machine has no ACLs')
  t.like(await copy({ file: fileRoutes.put('f1', 'new'), path }), done)
  t.notRegex(run('getfacl', path).stdout, /user:daemon/)
  return undefined
})

test('the replaced files of a tree keep their ACLs, extended attributes and capabilities', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t)
  const path = join(directory, 'site')
  const tree = (text: string) =>
    tarOf(['a', 'b', 'deep/a', 'deep/b', 'deep/c'].map((name) => ({ name, content: `${name} ${text}` })))
  await copy({ file: fileRoutes.put('f1', await tree('old')), path, kind: 'TREE' })
  if (!dress(join(path, 'deep/c'))) return t.pass('this machine has no such attributes')
  const before = dressOf(join(path, 'deep/c'))
  t.like(await copy({ file: fileRoutes.put('f2', await tree('new')), path, kind: 'TREE' }), done)
  t.is(readFileSync(join(path, 'deep/c'), 'utf8'), 'deep/c new')
  t.is(dressOf(join(path, 'deep/c')), before)
  t.is(dressOf(join(path, 'b')), '')
  return undefined
})

asRoot('the result names attributes that a user may not keep, and the others are kept', async (t) => {
  const { fileRoutes, copy, directory, path } = await copyingAgent(t, { allowRunAs: ['nobody'] })
  chmodSync(directory, 0o777)
  t.like(await copy({ file: fileRoutes.put('f1', 'old'), path }, 'nobody'), done)
  if (!dress(path)) return t.pass('this machine has no such attributes')
  const { said, ...end } = await copy({ file: fileRoutes.put('f2', 'new'), path }, 'nobody')
  t.like(end, { ...done, changed: true })
  t.regex(
    said,
    /^not all ACLs, extended attributes and capabilities of \/.*\/file are kept: .*security\.capability/,
  )
  t.regex(dressOf(path), /posix_acl_access[^]*user\.kept="yes"/)
  t.notRegex(dressOf(path), /capability/)
  return undefined
})

asRoot('the result of a tree names attributes that its user may not read from a replaced file', async (t) => {
  const { fileRoutes, copy, directory } = await copyingAgent(t, { allowRunAs: ['nobody'] })
  chmodSync(directory, 0o777)
  const path = join(directory, 'site')
  const tree = (text: string) =>
    tarOf(['a', 'b', 'deep/a', 'deep/b', 'deep/c'].map((name) => ({ name, content: `${name} ${text}` })))
  t.like(await copy({ file: fileRoutes.put('f1', await tree('old')), path, kind: 'TREE' }, 'nobody'), done)
  const sealed = join(path, 'deep/c')
  if (run('setfattr', '-n', 'user.lost', '-v', 'yes', sealed).status !== 0)
    return t.pass('this machine has no such attributes')
  chmodSync(sealed, 0)
  const { said } = await copy({ file: fileRoutes.put('f2', await tree('new')), path, kind: 'TREE' }, 'nobody')
  t.regex(said, /^not all ACLs, [^\n]*\/deep\/c are kept: [^\n]*\(EACCES\)$/m)
  return undefined
})
