import {
  chmod,
  chown,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../../fixtures/rsm.ts'
import { chain } from '../../../helpers/audit/audit-lines.ts'
import { copying } from '../../../helpers/audit/copying.ts'
import { until } from '../../../helpers/until.ts'

async function world(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  const file = join(home, 'audit.jsonl')
  const linesOf = async (path = file) => (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  return { ...(await copying(t)), home, file, target: `file:${file}`, linesOf }
}

test('a copy has what was in the log before it, and each new entry, for its owner only', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, file, target } = await world(t)
  await append(5000)
  const copy = copyTo(target)
  await upToDate(copy)
  t.deepEqual(await linesOf(), await lines())
  t.is((await stat(file)).mode & 0o777, 0o600)
  await append(1)
  // Its line is there a moment before the copy counts it.
  await upToDate(copy)
  t.is((await linesOf()).length, 5002)
  t.deepEqual(copy.status, { target, copied: 5002, waiting: 0, behindSeconds: 0, error: null })
})

test('a copy goes on after a restart without a gap and with nothing twice, also where the last line was cut by a crash', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, file, target } = await world(t)
  await append(10)
  await copyTo(target).close()
  await append(10)
  const second = copyTo(target)
  await upToDate(second)
  await second.close()
  const { size } = await stat(file)
  await truncate(file, size - 40)
  await append(10)
  const third = copyTo(target)
  await upToDate(third)
  t.deepEqual(await linesOf(), await lines())
})

test('a file that was rotated is opened anew, also by a server that was stopped meanwhile', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, file, target } = await world(t)
  await append(10)
  const copy = copyTo(target)
  await upToDate(copy)
  await rename(file, `${file}.1`)
  await append(10)
  await upToDate(copy)
  await copy.close()
  await rename(file, `${file}.2`)
  await append(10)
  const next = copyTo(target)
  await upToDate(next)
  // As copytruncate does.
  await rename(file, `${file}.3`)
  await writeFile(file, '')
  await append(1)
  await upToDate(next)
  const parts = await Promise.all([`${file}.1`, `${file}.2`, `${file}.3`, file].map(linesOf))
  t.deepEqual(parts.flat(), await lines())
})

test('nothing is added to a file that is no copy of this log', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, file, target } = await world(t)
  await append(3)
  const others = [
    'root:x:0:0:root:/root:/bin/bash\n',
    'no line',
    `${chain(3).lines.join('\n')}\n`,
    `${chain(3).lines.join('\n')}\nroot`,
  ]
  for (const text of others) {
    await writeFile(file, text)
    const copy = copyTo(target)
    await until('it is refused', () => copy.status.error !== null)
    t.regex(copy.status.error ?? '', /^it does not end with an entry of this audit log: move it away/)
    await copy.close()
    t.is(await readFile(file, 'utf8'), text)
  }
  await rm(file)
  await mkdir(file)
  const copy = copyTo(target)
  await until('it is refused', () => copy.status.error !== null)
  t.is(copy.status.error, 'it is not a regular file')
  await rm(file, { recursive: true })
  await upToDate(copy)
  t.deepEqual(await linesOf(), await lines())
})

test('a link is not followed, and no file is taken that another user owns or may write', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, file, home, target } = await world(t)
  await append(3)
  const other = join(home, 'other')
  const refused = async (why: RegExp) => {
    const copy = copyTo(target)
    await until('it is refused', () => copy.status.error !== null)
    t.regex(copy.status.error ?? '', why)
    await copy.close()
    await rm(file, { force: true })
  }
  await writeFile(other, '')
  await symlink(other, file)
  await refused(/^it is a symbolic link: name the file itself$/)
  await symlink(join(home, 'nothing'), file)
  await refused(/^it is a symbolic link/)
  t.deepEqual((await readdir(home)).toSorted(), ['other'])
  for (const mode of [0o602, 0o620]) {
    await writeFile(file, '')
    await chmod(file, mode)
    await refused(/^other users may write it: chmod go-w/)
  }
  if (process.getuid?.() === 0) {
    await writeFile(file, '')
    await chown(file, 1, 1)
    await refused(/^it belongs to another user \(uid 1\): move it away/)
  }
  t.is(await readFile(other, 'utf8'), '')
  await writeFile(file, '', { mode: 0o640 })
  await upToDate(copyTo(target))
  t.deepEqual(await linesOf(), await lines())
})

test('S11 lines of the log that were damaged are copied as they stand, and do not stop the copy', async (t) => {
  const { append, copyTo, upToDate, lines, linesOf, logFile, target } = await world(t)
  await append(5)
  const log = await open(logFile, 'r+')
  t.teardown(() => log.close())
  const text = await readFile(logFile, 'utf8')
  for (const id of [3, 4]) await log.write('XXXX', text.indexOf(`{"id":${id},`))
  const copy = copyTo(target)
  await upToDate(copy)
  t.deepEqual(await linesOf(), await lines())
  t.is((await linesOf()).filter((line) => line.startsWith('XXXX')).length, 2)
  await append(5)
  await upToDate(copy)
  t.deepEqual(await linesOf(), await lines())
})
