import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { systemClock as clock } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createCluster } from '../../../src/server/storage/files/cluster.ts'
import { openExecutions } from '../../../src/server/storage/files/executions/executions.ts'
import { createFileOutputs } from '../../../src/server/storage/files/outputs/file-outputs.ts'
import { createFileResults } from '../../../src/server/storage/files/results.ts'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { beginSteps, executionStep, known, takeStep } from '../../contracts/execution-steps.ts'
import type { OpenedExecutions } from '../../contracts/executions.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { executingServer } from '../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'

const postgres = sharedPostgres()
type Teardown = (end: () => Promise<void>) => void

function fatal(error: unknown): never {
  throw error
}

async function reopen(): Promise<never> {
  throw new Error('these stores cannot be reopened')
}

async function onFiles(teardown: Teardown): Promise<OpenedExecutions> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-executions-'))
  teardown(() => rm(directory, { recursive: true, force: true }))
  const store = await openJsonStore({ directory: join(directory, 'store'), onFatal: fatal })
  const hints = createLocalHints()
  const outputs = createFileOutputs(join(directory, 'tasks'), hints, fatal)
  const results = createFileResults(join(directory, 'tasks'))
  const { ownership, links } = createCluster(clock)
  const log = createLog('ERROR')
  const executions = await openExecutions({ store, outputs, results, hints, links, ownership, clock, log })
  teardown(async () => {
    await executions.close()
    await outputs.close()
    await store.close()
  })
  return { executions, store, results, links, ownership, reopen }
}

async function inPostgres(teardown: Teardown): Promise<OpenedExecutions> {
  const server = await executingServer(await sharedStore(await postgres, teardown), 'server')
  teardown(() => server.close())
  return { ...server, reopen }
}

test('random steps have the same results on files and in PostgreSQL', async (t) => {
  const run = async (steps: Parameters<typeof takeStep>[1][]) => {
    const ends: (() => Promise<void>)[] = []
    try {
      const one = await beginSteps(await onFiles((end) => ends.push(end)))
      const other = await beginSteps(await inPostgres((end) => ends.push(end)))
      for (const step of steps) {
        t.deepEqual(await takeStep(other, step), await takeStep(one, step), JSON.stringify(step))
        t.deepEqual(await known(other), await known(one), `after ${JSON.stringify(step)}`)
      }
    } finally {
      for (const end of ends.toReversed()) await end()
    }
  }
  await fc.assert(fc.asyncProperty(fc.array(executionStep, { minLength: 20, maxLength: 40 }), run), {
    numRuns: 12,
    endOnFailure: true,
  })
})
