import { spawn } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { said } from '../programs/said.ts'

const program = 'dist/test/fixtures/open-data-directory.js'

/** A directory with a blank in its path. */
export async function temporary(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm data-'))
  t.teardown(async () => {
    await chmod(directory, 0o700)
    await rm(directory, { recursive: true, force: true })
  })
  return directory
}

/** Opens a data directory in another process; returns that process and the outcome. */
export async function openElsewhere(
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
