import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openProgram } from '../../helpers/programs/open-program.ts'
import { said } from '../../helpers/programs/said.ts'

const program = 'dist/test/fixtures/open-data-directory.js'
const isRoot = process.getuid?.() === 0
const nobody = 65534

async function temporary(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm data-'))
  t.teardown(async () => {
    await chmod(directory, 0o700)
    await rm(directory, { recursive: true, force: true })
  })
  return directory
}

async function openElsewhere(
  t: ExecutionContext,
  path: string,
  { root = resolve(''), ...options }: { uid?: number; env?: NodeJS.ProcessEnv; root?: string } = {},
) {
  const child = spawn(process.execPath, [join(root, program), path], {
    stdio: 'pipe',
    cwd: '/',
    ...options,
  })
  t.teardown(() => child.kill('SIGKILL'))
  const outcome = JSON.parse(await said(child)) as {
    path?: string
    code?: string
    message?: string
    hint?: string
  }
  return { child, outcome }
}

test('A18 F05 a directory without write permission is refused with what to do', async (t) => {
  const path = await temporary(t)
  if (isRoot) await chown(path, nobody, nobody)
  await chmod(path, 0o500)
  const { child, outcome } = await openElsewhere(t, path, isRoot ? { uid: nobody, root: openProgram(t) } : {})
  t.is(outcome.code, 'unavailable')
  t.is(outcome.message, `data directory ${path} can not be written by this user`)
  t.regex(outcome.hint ?? '', /--data-dir/)
  if (child.exitCode === null) await once(child, 'exit')
  t.is(child.exitCode, 1)
})
