import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { systemClock as clock } from '../../../../src/server/clock.ts'
import { openExecutions } from '../../../../src/server/embedded/executions/executions.ts'
import { createHints } from '../../../../src/server/embedded/hints.ts'
import { createLinks } from '../../../../src/server/embedded/links.ts'
import { createFileOutputs } from '../../../../src/server/embedded/outputs/file-outputs.ts'
import { createOwnership } from '../../../../src/server/embedded/ownership.ts'
import { createFileResults } from '../../../../src/server/embedded/results.ts'
import { openJsonStore } from '../../../../src/server/embedded/store/store.ts'
import { createLog } from '../../../../src/server/log.ts'
import { executionsContract, type OpenedExecutions } from '../../../contracts/executions.ts'

function fatal(error: unknown): never {
  throw error
}

async function open(directory: string, lives: (() => Promise<void>)[]): Promise<OpenedExecutions> {
  const store = await openJsonStore({ directory: join(directory, 'store'), onFatal: fatal })
  const hints = createHints()
  const outputs = createFileOutputs(join(directory, 'tasks'), hints, fatal)
  const results = createFileResults(join(directory, 'tasks'))
  const ownership = createOwnership(clock)
  const links = createLinks(clock, ownership)
  const log = createLog('ERROR')
  const executions = await openExecutions({ store, outputs, results, hints, links, ownership, clock, log })
  let closing: Promise<void> | undefined
  const close = () =>
    (closing ??= (async () => {
      await executions.close()
      await outputs.close()
      await store.close()
    })())
  lives.push(close)
  const reopen = async () => {
    await close()
    return open(directory, lives)
  }
  return { executions, store, results, links, ownership, reopen }
}

executionsContract(test, async (teardown) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-executions-'))
  const lives: (() => Promise<void>)[] = []
  teardown(async () => {
    for (const close of lives) await close()
    await rm(directory, { recursive: true, force: true })
  })
  return open(directory, lives)
})
