import fs, { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type Clock, systemClock } from '../../src/agent/clock.ts'
import { Journal } from '../../src/agent/executions/journal.ts'
import { ExecutionOutput } from '../../src/agent/executions/output/execution-output.ts'
import { ChunkIndex } from '../../src/agent/executions/output/spool.ts'
import { startAgent } from '../../src/agent/main.ts'
import { thisMachine } from '../../src/agent/processes/machine.ts'
import { agentOptions, linkedAgent, temporaryDirectory } from '../helpers/agents/agent.ts'
import { request, runnerOn } from '../helpers/agents/runner.ts'
import { refuse, replace } from '../helpers/faults/refusing-system.ts'
import { until } from '../helpers/until.ts'

// Serial, because a refused system call is refused to all tests of this file.
for (const code of ['EMFILE', 'ENOSPC'])
  test.serial(`a script whose spool cannot be watched (${code}) runs, and its output is read`, async (t) => {
    const base = await temporaryDirectory(t)
    refuse(t, 'watch', code)
    const directory = join(base, 'executions')
    const { runner } = runnerOn(t, directory, new Journal(join(base, 'journal'), Date.now))
    let chunks = 0
    const seen = new Promise<void>((resolve) => {
      runner.subscribe({
        changed(execution) {
          if (execution.run && execution.output().cut()) chunks += 1
          if (chunks > 0 || execution.complete) resolve()
        },
      })
    })
    const script = `sleep 0.3; echo seen; while [ ! -e ${base}/go ]; do sleep 0.05; done; exit 3`
    await runner.execute(request('once', script))
    await seen
    t.is(chunks, 1)
    t.is(runner.executions.get('once')?.state, 'RUNNING')
    writeFileSync(`${base}/go`, '')
    await until('it has ended', () => runner.executions.get('once')?.state === 'EXITED')
    const complete = runner.executions.get('once')?.complete
    t.is(complete?.exitCode, 3)
    t.is(complete?.error, null)
  })

test.serial('an execution that cannot be resumed now is resumed later, and the others at once', async (t) => {
  const base = await temporaryDirectory(t)
  const directory = join(base, 'executions')
  const path = join(base, 'journal')
  const first = runnerOn(t, directory, new Journal(path, Date.now), 2)
  const script = `while [ ! -e ${base}/go ]; do sleep 0.05; done; exit 4`
  for (const taskId of ['one', 'two']) await first.runner.execute(request(taskId, script))
  await first.runner.stop()
  // The first two calls ask whether both began, the third one is for the execution resumed first.
  let asked = 0
  const { runner, ended } = runnerOn(t, directory, new Journal(path, Date.now), 2, () => ++asked === 3)
  await runner.recover()
  t.is(runner.executions.get('one')?.state, 'RUNNING')
  t.is(runner.executions.get('one')?.run, null)
  t.not(runner.executions.get('two')?.run, null)
  writeFileSync(`${base}/go`, '')
  t.is((await ended('one')).exitCode, 4)
  t.is((await ended('two')).exitCode, 4)
})

test.serial('a partly written entry of the chunk index counts as not written', async (t) => {
  const path = join(await temporaryDirectory(t), 'chunks')
  const index = new ChunkIndex(path)
  const entry = (offset: number) => ({ kind: 'stdout' as const, offset, length: 7 })
  index.append(entry(0))
  const end = replace(t, 'writeSync', (real, fd, bytes) => real(fd, bytes, 0, 5))
  t.throws(() => index.append(entry(7)), { message: /full/ })
  end()
  t.is(index.count, 1)
  index.append(entry(14))
  t.deepEqual(index.at(1), entry(14))
  index.close()
  const again = new ChunkIndex(path)
  t.deepEqual([...again.entries()], [entry(0), entry(14)])
  again.close()
})

test.serial(
  'an end that a full disk refuses in the middle of its tail is cut again, with one marker',
  async (t) => {
    const directory = await temporaryDirectory(t)
    const output = new ExecutionOutput(directory, 1000, false)
    writeFileSync(`${directory}/stdout`, 'a'.repeat(3000))
    writeFileSync(`${directory}/stderr`, 'b'.repeat(3000))
    let entries = 0
    const end = refuse(t, 'writeSync', 'ENOSPC', () => ++entries > 3)
    t.throws(() => output.finish(), { message: /ENOSPC/ })
    const before = output.count
    end()
    t.true(output.finish().truncated)
    const read = Array.from({ length: output.count }, (_, at) => output.read(at).content.toString())
    t.is(read.filter((text) => text.includes('left out here')).length, 1)
    t.true(read.slice(0, before).every((text) => /^(a+|b+)$/.test(text)))
    t.is(read.filter((text) => /^[ab]+$/.test(text)).join('').length, 1000)
    output.close()
  },
)

/** A disk without room for output; `refusesOn` settles once it has refused more output. */
function fullOfChunks(t: ExecutionContext) {
  let refused = 0
  const end = refuse(t, 'writeSync', 'ENOSPC', (_, bytes) => {
    // Only entries of the chunk index have this length.
    const isChunk = bytes instanceof Buffer && bytes.length === 12
    if (isChunk) refused += 1
    return isChunk
  })
  const refusesOn = () => {
    const before = refused
    return until('the write is retried', () => refused > before + 5)
  }
  return { end, refusesOn }
}

/** A clock on which refused writes are retried after 10 ms instead of 1 s. */
const soon: Clock = {
  ...systemClock,
  after: (delay, run) => systemClock.after(delay === 1_000 ? 10 : delay, run),
}

test.serial(
  'an agent survives a full disk: a cancel works, and the end is reported once there is room',
  async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, { clock: soon })
    const disk = fullOfChunks(t)
    const script = `echo up; echo $$ > ${dataDir}/pid; sleep 60`
    server.execute(agent.agentId, { taskId: 'full', script, timeout: 0 })
    await until('it runs', () => existsSync(`${dataDir}/pid`))
    server.send('CANCEL_SCRIPT', { taskId: 'full' })
    const pid = readFileSync(`${dataDir}/pid`, 'utf8').trim()
    await until('it is gone', () => !existsSync(`/proc/${pid}`))
    await disk.refusesOn()
    t.deepEqual(server.of('full').completes, [])
    t.is(server.text('full'), '')
    disk.end()
    const complete = await server.completed('full')
    t.is(complete.status, 'CANCELLED')
    t.is(complete.lastSequence, 0)
    t.is(server.text('full'), 'up\n')
    t.is(server.of('full').completes.length, 1)
  },
)

for (const isRestarted of [false, true])
  test.serial(
    `an exit code and output delayed by a full disk arrive correctly${isRestarted ? ' after a restart of the agent' : ''}`,
    async (t) => {
      const { server, agent, dataDir } = await linkedAgent(t, { clock: soon })
      const disk = fullOfChunks(t)
      const script = `seq 1 1000; touch ${dataDir}/done; exit 7`
      server.execute(agent.agentId, { taskId: 'held', script })
      await until('it is done', () => existsSync(`${dataDir}/done`))
      await disk.refusesOn()
      t.deepEqual(server.of('held').completes, [])
      if (isRestarted) await agent.stop()
      disk.end()
      if (isRestarted) {
        const next = await startAgent(agentOptions(server, dataDir))
        t.teardown(() => next.stop())
      }
      const complete = await server.completed('held')
      t.is(complete.exitCode, 7)
      t.is(complete.error, null)
      t.is(server.text('held'), Array.from({ length: 1000 }, (_, at) => `${at + 1}\n`).join(''))
    },
  )

const isCompaction = (path: unknown) => String(path).endsWith('journal.tmp')

test.serial(
  'an agent starts on a full disk with its uncompacted journal, and continues to write to it',
  async (t) => {
    const path = join(await temporaryDirectory(t), 'journal')
    const first = new Journal(path, Date.now)
    first.append({ e: 'received', taskId: 'one' })
    first.close()
    appendFileSync(path, '{"e":"rec')
    const end = refuse(t, 'fsyncSync', 'ENOSPC')
    const second = new Journal(path, Date.now)
    end()
    t.false(existsSync(`${path}.tmp`))
    t.is(second.storeId, first.storeId)
    second.append({ e: 'received', taskId: 'two' })
    await second.sync()
    second.close()
    const third = new Journal(path, Date.now)
    t.deepEqual([...third.records.keys()], ['one', 'two'])
    third.close()
  },
)

test.serial('opening a new journal fails if the disk refuses it', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  refuse(t, 'openSync', 'ENOSPC', isCompaction)
  t.throws(() => new Journal(path, Date.now), { message: /ENOSPC/ })
})

test.serial(
  'an entry appended after a compaction whose directory sync failed is durable only after a later sync',
  async (t) => {
    const path = join(await temporaryDirectory(t), 'journal')
    const journal = new Journal(path, Date.now)
    const end = refuse(t, 'fsyncSync', 'EIO', (fd) => fs.fstatSync(Number(fd)).isDirectory())
    t.throws(() => journal.compact(), { message: /EIO/ })
    journal.append({ e: 'received', taskId: 'one' })
    await t.throwsAsync(journal.sync(), { message: /EIO/ })
    end()
    await journal.sync()
    journal.close()
    const again = new Journal(path, Date.now)
    t.deepEqual([...again.records.keys()], ['one'])
    again.close()
  },
)

test.serial('a start that a full disk keeps from being undone gets an end, and does not begin', async (t) => {
  const base = await temporaryDirectory(t)
  const path = join(base, 'journal')
  const before = new Journal(path, Date.now)
  const bootId = thisMachine.bootId()
  const started = { startedAt: new Date().toISOString(), uptime: thisMachine.uptime(), timeout: 0 }
  for (const taskId of ['one', 'two'])
    before.append({ e: 'started', taskId, bootId, ...started, maxOutputBytes: 1000, cgroup: null })
  before.close()
  const journal = new Journal(path, Date.now)
  const { runner, ended } = runnerOn(t, join(base, 'executions'), journal)
  const end = refuse(t, 'openSync', 'ENOSPC', isCompaction)
  await runner.recover()
  t.is((await ended('one')).status, 'LOST')
  t.is((await ended('two')).status, 'LOST')
  end()
})
