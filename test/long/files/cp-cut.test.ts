import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import test from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { copyFleet } from '../../helpers/agents/copy-fleet.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'

const size = 48 * 1024 * 1024

for (const source of ['big', '-'])
  test(`an upload of ${source} that is cut at every quarter resumes where it stopped and is complete`, async (t) => {
    const { server, theirs, file } = await copyFleet(t, 'web1')
    const bytes = randomBytes(size)
    const path = file('big', bytes)
    const link = await startCutLink(t, server.url)
    const env = cleanEnv(temporaryDirectory(t), { RSM_URL: link.url, RSM_TOKEN: server.token })
    const local = source === '-' ? '-' : path
    const { child, done } = startRsm(['cp', local, `web1:${theirs}/copied`], env)
    child.stdin.on('error', () => {})
    child.stdin.end(source === '-' ? bytes : '')
    const files = join(server.dataDir, 'files')
    const stored = () => {
      const sizes = readdirSync(files, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => statSync(join(files, name)).size)
      return Math.max(0, ...sizes)
    }
    for (const quarter of [0.25, 0.5, 0.75]) {
      while (stored() < quarter * size) await turn()
      t.true(stored() < size, `cut at ${stored()}`)
      link.cut()
    }
    const { exit, stderr } = await done
    t.is(exit, 0, stderr)
    t.regex(stderr, /^rsm: cannot reach .*: connection lost; sending .* continues where it was cut$/m)
    t.true(readFileSync(join(theirs, 'copied')).equals(bytes))
  })

test('a file that changes during the upload is not copied', async (t) => {
  const { server, theirs, file } = await copyFleet(t, 'web1')
  const path = file('big', randomBytes(size))
  const link = await startCutLink(t, server.url)
  link.freeze()
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: link.url, RSM_TOKEN: server.token })
  const { done } = startRsm(['cp', path, `web1:${theirs}/copied`], env)
  // With the file open, the command asks for hosts before it sends any bytes.
  while (link.count === 0) await turn()
  writeFileSync(path, 'short')
  link.thaw()
  const { exit, stderr } = await done
  t.is(exit, 2, stderr)
  t.regex(stderr, /big: it changed while it was read; run it again/)
  t.deepEqual(readdirSync(theirs), [])
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})
