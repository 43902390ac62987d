import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { LocalTemporaries } from '../../../src/cli/files/receive.ts'
import { OpenDirectory } from '../../../src/disk/files/open-directory.ts'
import { Replacement } from '../../../src/disk/files/replacement.ts'

test.serial('files are replaced even if cp cannot keep extended attributes, with one note', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'rsm-replacement-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const programs = join(path, 'bin')
  mkdirSync(programs)
  for (const name of ['cp', 'tar'])
    writeFileSync(join(programs, name), `#!/bin/sh\necho "${name}: unrecognized option" >&2; exit 1\n`, {
      mode: 0o755,
    })
  const { PATH } = process.env
  process.env['PATH'] = programs
  const notes: string[] = []
  const temporaries = new LocalTemporaries('task', (line) => notes.push(line))
  const directory = OpenDirectory.open(path)
  t.teardown(() => {
    process.env['PATH'] = PATH
    directory.close()
    temporaries.close()
  })
  for (const name of ['a', 'b', 'c']) {
    writeFileSync(join(path, name), 'old')
    const replacement = new Replacement(temporaries, directory, name)
    await replacement.write(Buffer.from('new'))
    await replacement.commit({ mode: 0o600, uid: null, gid: null }, { keepsPrevious: false })
    await replacement.close()
    t.is(readFileSync(join(path, name), 'utf8'), 'new')
  }
  t.deepEqual(notes, [
    'not all ACLs, extended attributes and capabilities of files that are replaced are kept: cp: unrecognized option',
  ])
})

test.serial('new content is never readable by more users than its mode allows', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'rsm-replacement-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const programs = join(path, 'bin')
  mkdirSync(programs)
  const seen = join(path, 'seen')
  const { PATH } = process.env
  const script = `#!/bin/sh
PATH='${PATH}'
cp "$@"; status=$?
stat -L -c '%a %s' /proc/self/fd/4 >> '${seen}'
exit $status
`
  writeFileSync(join(programs, 'cp'), script, { mode: 0o755 })
  process.env['PATH'] = programs
  const temporaries = new LocalTemporaries('task', (line) => t.fail(line))
  const directory = OpenDirectory.open(path)
  t.teardown(() => {
    process.env['PATH'] = PATH
    directory.close()
    temporaries.close()
  })
  writeFileSync(join(path, 'key'), 'for all')
  chmodSync(join(path, 'key'), 0o644)
  const replacement = new Replacement(temporaries, directory, 'key')
  await replacement.write(Buffer.from('secret'))
  await replacement.commit({ mode: 0o600, uid: null, gid: null }, { keepsPrevious: false })
  await replacement.close()
  t.is(readFileSync(seen, 'utf8'), '644 0\n600 6\n')
})
