import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { openDataDirectory } from '../../src/disk/data-directory.ts'
import { openElsewhere, temporary } from '../helpers/servers/opened-directory.ts'

const isRoot = process.getuid?.() === 0
const nobodyId = 65534

test('F05 a missing directory is created with mode 0700, also on a path with spaces', async (t) => {
  const path = join(await temporary(t), 'deep er', 'da ta')
  const opened = await openDataDirectory(path)
  t.is(opened.path, path)
  t.is((await stat(path)).mode & 0o777, 0o700)
  for (const name of await readdir(path)) t.is((await stat(join(path, name))).mode & 0o777, 0o600)
  await opened.release()
})

test('F05 a directory of another user is refused with both users', async (t) => {
  const path = isRoot ? await temporary(t) : '/usr'
  if (isRoot) await chown(path, nobodyId, nobodyId)
  await t.throwsAsync(openDataDirectory(path), {
    code: 'unavailable',
    message: /belongs to user \d+, but rsm runs as user/,
  })
})

test('F05 a file where the directory should be is refused', async (t) => {
  const path = join(await temporary(t), 'file')
  await writeFile(path, '')
  await t.throwsAsync(openDataDirectory(path), {
    code: 'invalid',
    message: `data directory ${path} is not a directory`,
  })
  await t.throwsAsync(openDataDirectory(join(path, 'below')), { code: 'invalid' })
})

test('F05 a directory open to others is closed if empty, and refused if it has other content', async (t) => {
  const parent = await temporary(t)
  const empty = join(parent, 'empty')
  await mkdir(empty)
  await chmod(empty, 0o755)
  await (await openDataDirectory(empty)).release()
  t.is((await stat(empty)).mode & 0o777, 0o700)
  const shared = join(parent, 'shared')
  await mkdir(join(shared, 'something'), { recursive: true })
  await chmod(shared, 0o755)
  await t.throwsAsync(openDataDirectory(shared), {
    code: 'unavailable',
    message: /open to other users \(mode 755\)/,
  })
  t.is((await stat(shared)).mode & 0o777, 0o755)
})

test('F06 a second process learns the pid of the holder, and kill -9 frees the directory', async (t) => {
  const path = await temporary(t)
  const { child, outcome } = await openElsewhere(t, path)
  t.is(outcome.path, path)
  await t.throwsAsync(openDataDirectory(path), {
    code: 'conflict',
    message: new RegExp(`^data directory ${path} is in use by pid ${child.pid} since \\d{4}-\\d\\d-\\d\\dT`),
  })
  child.kill('SIGKILL')
  await once(child, 'exit')
  const opened = await openDataDirectory(path)
  await t.throwsAsync(openDataDirectory(path), {
    code: 'conflict',
    message: new RegExp(`pid ${process.pid} since`),
  })
  await opened.release()
  await opened.release()
  await (await openDataDirectory(path)).release()
})

test('F06 a directory is refused without flock(1), rather than shared by accident', async (t) => {
  const { outcome } = await openElsewhere(t, await temporary(t), { env: { PATH: '/nonexistent' } })
  t.is(outcome.code, 'unavailable')
  t.regex(outcome.hint ?? '', /util-linux/)
})
