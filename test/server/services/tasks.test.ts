import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { fillHostSets } from '../../../src/server/services/tasks.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { task } from '../../helpers/servers/store-records.ts'
import { until } from '../../helpers/until.ts'

test('a task of an older server, stored without its hosts, is found by its results after the next start', async (t) => {
  const { services, context } = await startInsides(t)
  const { store } = context
  const hosts = [await services.hosts.create({ hostname: 'a', ip: '192.0.2.1' })]
  hosts.push(await services.hosts.create({ hostname: 'b', ip: '192.0.2.2' }))
  const [a = 0, b = 0] = hosts.map(({ id }) => id)
  const ran = async (hostIds: number[]) => {
    const { taskId } = await services.tasks.create({ script: { content: 'true' }, target: { hostIds } })
    await until('it has ended', async () => (await services.tasks.get(taskId)).status !== 'RUNNING')
    return taskId
  }
  const tasks = [await ran([a]), await ran([b]), await ran([a, b])]
  await store.transact(async (tx) => {
    for (const record of await tx.getMany('tasks', tasks.slice(0, 2))) {
      if (!record) continue
      const { hostSet: _, ...older } = record
      tx.put('tasks', older)
    }
  })
  const found = async (hostId: number, size: number) => {
    const { content, totalElements } = await services.tasks.list({ hostId, size })
    return [...content.map(({ taskId }) => tasks.indexOf(taskId)), `of ${totalElements}`]
  }
  t.deepEqual(await found(a, 20), [2, 'of 1'])
  await fillHostSets(context)
  t.deepEqual(await found(a, 20), [2, 0, 'of 2'])
  t.deepEqual(await found(b, 1), [2, 'of 2'])
})

test('a task without a script shows that by its type, and has no text', async (t) => {
  const { services, context } = await startInsides(t)
  const ended = { status: 'SUCCESS', hostCount: 0, content: null, hostSet: '' } as const
  const record = task('install-1', { ...ended, type: 'INSTALL', firstLine: 'install the agent' })
  await context.store.transact(async (tx) => tx.put('tasks', record))
  const { type, firstLine } = await services.tasks.get('install-1')
  t.deepEqual({ type, firstLine }, { type: 'INSTALL', firstLine: 'install the agent' })
  const error = await t.throwsAsync<RsmError>(services.tasks.script('install-1'), { instanceOf: RsmError })
  t.is(error.code, 'not_found')
  t.is(error.message, 'Task install-1 runs no script: its type is INSTALL')
})
