import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { systemClock as clock } from '../../../../../src/disk/clock.ts'
import { createLog } from '../../../../../src/disk/log.ts'
import { createCluster } from '../../../../../src/server/storage/files/cluster.ts'
import { openExecutions } from '../../../../../src/server/storage/files/executions/executions.ts'
import { createFileOutputs } from '../../../../../src/server/storage/files/outputs/file-outputs.ts'
import { createFileResults } from '../../../../../src/server/storage/files/results.ts'
import { openJsonStore } from '../../../../../src/server/storage/files/store/store.ts'
import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { Store, Transaction } from '../../../../../src/server/storage/ports/store.ts'
import { executionsContract, type OpenedExecutions } from '../../../../contracts/executions.ts'
import { execution, task } from '../../../../helpers/servers/store-records.ts'

function fatal(error: unknown): never {
  throw error
}

async function open(
  directory: string,
  lives: (() => Promise<void>)[],
  seen = (store: Store): Store => store,
): Promise<OpenedExecutions> {
  const store = seen(await openJsonStore({ directory: join(directory, 'store'), onFatal: fatal }))
  const hints = createLocalHints()
  const outputs = createFileOutputs(join(directory, 'tasks'), hints, fatal)
  const results = createFileResults(join(directory, 'tasks'))
  const { ownership, links } = createCluster(clock)
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

test('the next execution of a long queue is found without reading the whole queue', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-executions-'))
  const lives: (() => Promise<void>)[] = []
  t.teardown(async () => {
    for (const close of lives) await close()
    await rm(directory, { recursive: true, force: true })
  })
  let read = 0
  const counted = (tx: Transaction): Transaction => ({
    ...tx,
    async find(noun, index, key) {
      const found = await tx.find(noun, index, key)
      read += found.length
      return found
    },
    async getMany(noun, ids) {
      read += ids.length
      return tx.getMany(noun, ids)
    },
  })
  const { executions, links, ownership } = await open(directory, lives, (store) => ({
    ...store,
    transact: (work) => store.transact((tx) => work(counted(tx))),
  }))
  const server = await ownership.join('server')
  const dueAt = new Date().toISOString()
  const ids = Array.from({ length: 500 }, (_, at) => `t${String(at).padStart(3, '0')}`)
  await Promise.all(
    ids.map((id) => executions.create(task(id), [{ ...execution(id, 1), dueAt }], async () => null)),
  )
  const claimed = await links.claim(1, { server, agentId: 'agent-1' }, () => undefined)
  if (!claimed) throw new Error('the claim is refused')
  const agent = { agentStoreId: 'journal', agentInstanceId: null, agentJournal: null }
  for (const id of ids.slice(0, 10)) {
    const taken = await executions.take([{ claim: claimed.claim, capacity: 1, agent }])
    t.deepEqual(
      taken.map(({ taskId }) => taskId),
      [id],
    )
    const [startedAt, completedAt] = [dueAt, dueAt]
    const complete = { taskId: id, exitCode: 0, duration: 1, startedAt, completedAt }
    await executions.settle(`${id}/1`, { complete, incomplete: false })
  }
  t.true(read < 100, `${read} records were read`)
})

executionsContract(test, async (teardown) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-executions-'))
  const lives: (() => Promise<void>)[] = []
  teardown(async () => {
    for (const close of lives) await close()
    await rm(directory, { recursive: true, force: true })
  })
  return open(directory, lives)
})
