import { once } from 'node:events'
import { chmod, chown } from 'node:fs/promises'
import test from 'ava'
import { openProgram } from '../../helpers/programs/open-program.ts'
import { openElsewhere, temporary } from '../../helpers/servers/opened-directory.ts'

const isRoot = process.getuid?.() === 0
const nobodyUid = 65534

test('A18 F05 a data directory without write permission is refused with advice', async (t) => {
  const path = await temporary(t)
  if (isRoot) await chown(path, nobodyUid, nobodyUid)
  await chmod(path, 0o500)
  const { child, outcome } = await openElsewhere(
    t,
    path,
    isRoot ? { uid: nobodyUid, root: openProgram(t) } : {},
  )
  t.is(outcome.code, 'unavailable')
  t.is(outcome.message, `data directory ${path} cannot be written by this user`)
  t.regex(outcome.hint ?? '', /--data-dir/)
  if (child.exitCode === null) await once(child, 'exit')
  t.is(child.exitCode, 1)
})
