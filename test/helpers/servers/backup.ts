import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { TestServer } from './server.ts'

/** Copies the directory of a stopped server; returns a function that restores it, as an administrator does by hand. */
export async function backUp(
  t: Pick<ExecutionContext, 'teardown'>,
  server: TestServer,
): Promise<{ restore(): Promise<void> }> {
  const copy = await mkdtemp(join(tmpdir(), 'rsm-backup-'))
  t.teardown(() => rm(copy, { recursive: true, force: true }))
  await server.stop()
  await cp(server.dataDir, copy, { recursive: true })
  await server.restart()
  return {
    async restore() {
      await server.stop()
      for (const name of await readdir(server.dataDir))
        await rm(join(server.dataDir, name), { recursive: true, force: true })
      await cp(copy, server.dataDir, { recursive: true })
      await server.restart()
    },
  }
}
