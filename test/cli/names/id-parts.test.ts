import test from 'ava'
import { findTerminalId } from '../../../src/cli/names/id-parts.ts'
import { findTaskId } from '../../../src/cli/names/names.ts'
import type { Client } from '../../../src/client/client.ts'
import { pageOf, taskOf } from '../../fixtures/fake-server.ts'

const ids = [
  '01KAJ5Y3Z8QWERTY0123456789',
  '01KAJ5Y3Z8ASDFGH01234AAAAA',
  '01KAJ5Y2T1ZXCVBN0123ABCDEF',
] as const

/** A server with `total` tasks that lists these, newest first; `calls` records its queries. */
function serverOf(taskIds: readonly string[], total = taskIds.length) {
  const calls: unknown[] = []
  const tasks = taskIds.map((taskId) => taskOf([], { taskId }))
  const list = async (query: unknown) => {
    calls.push(query)
    return { ...pageOf(tasks), totalElements: total }
  }
  return { calls, services: { tasks: { list } } as unknown as Pick<Client, 'tasks' | 'auth'> }
}

test('a complete id, and a word that cannot be part of one, need no call', async (t) => {
  const { calls, services } = serverOf(ids)
  for (const whole of [ids[0], 'task-1', 'ABCDE', 'nosuch']) t.is(await findTaskId(services, whole), whole)
  t.deepEqual(calls, [])
})

for (const [part, at] of [
  ['456789', 0],
  ['4aaaaa', 1],
  ['01KAJ5Y2', 2],
  [ids[2].slice(1), 2],
] as const)
  test(`${part} is enough to find a task`, async (t) => {
    const { calls, services } = serverOf(ids)
    t.is(await findTaskId(services, part), ids[at])
    t.deepEqual(calls, [{ size: 500 }])
  })

test('a part of several ids is not found, and the error names them; neither is a part of no id', async (t) => {
  const { services } = serverOf(ids)
  const several = await t.throwsAsync(findTaskId(services, '01KAJ5Y3'))
  t.like(several, { code: 'not_found', message: `01KAJ5Y3 matches ${ids[0]}, ${ids[1]}` })
  const all = await t.throwsAsync(findTaskId(serverOf([...ids, ...ids]).services, '01KAJ5'))
  t.regex(all?.message ?? '', /, 01KAJ5Y3Z8ASDFGH01234AAAAA and 1 more$/)
  const none = await t.throwsAsync(findTaskId(services, 'QWERTY'))
  t.like(none, { code: 'not_found', message: 'no such task: QWERTY', hint: 'rsm tasks list' })
  const old = await t.throwsAsync(findTaskId(serverOf(ids, 501).services, 'QWERTY'))
  t.like(old, { hint: 'only the newest 500 are searched; rsm tasks list' })
})

const sessions = (...sessionIds: string[]) => {
  const asked: unknown[] = []
  const list = async (query: { size?: number }) => {
    asked.push(query)
    return pageOf(sessionIds.slice(0, query.size).map((sessionId) => ({ sessionId })))
  }
  const services = { terminals: { list }, auth: { me: async () => ({ username: 'ann' }) } }
  return { asked, services: services as unknown as Pick<Client, 'terminals' | 'auth'> }
}

test('A16 a recording can be named by latest or by a part of its id, like a task', async (t) => {
  const { asked, services } = sessions(...ids)
  t.is(await findTerminalId(services, 'latest'), ids[0])
  t.is(await findTerminalId(services, '4aaaaa'), ids[1])
  t.is(await findTerminalId(services, ids[2]), ids[2])
  t.deepEqual(asked, [
    { recorded: true, user: 'ann', size: 1 },
    { recorded: true, size: 500 },
  ])
  const none = await t.throwsAsync(findTerminalId(services, '999999'))
  t.like(none, { code: 'not_found', message: 'no such recording: 999999', hint: 'rsm recordings list' })
  const first = await t.throwsAsync(findTerminalId(sessions().services, 'latest'))
  t.like(first, { message: 'ann has no recorded session yet' })
})

test('A16 a misspelt latest is reported without a call', async (t) => {
  const { services: tasks, calls } = serverOf(ids)
  const { services: terminals, asked } = sessions(...ids)
  for (const typo of ['latst', 'Lastest', 'latets']) {
    const message = `no such task: ${typo} (did you mean latest?)`
    t.like(await t.throwsAsync(findTaskId(tasks, typo)), { code: 'not_found', message })
    await t.throwsAsync(findTerminalId(terminals, typo), { message: /did you mean latest/ })
  }
  t.deepEqual([...calls, ...asked], [])
})
