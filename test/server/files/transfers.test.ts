import type { ExecutionContext } from 'ava'
import test from 'ava'
import { createCarried, createTransfers } from '../../../src/server/files/transfers.ts'
import type { Executions } from '../../../src/server/storage/ports/executions.ts'
import { noted } from '../../helpers/agents/noted-link.ts'
import { fileGround } from '../../helpers/servers/grounds.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { until } from '../../helpers/until.ts'

const limitRate = 16_384

async function* text(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('text')
}

/** A host that may read a file, at the rate of its task. */
async function reading(t: ExecutionContext) {
  let executions: Executions | undefined
  const { services, engine, context } = await startInsides(t, async (...where) => {
    const ground = await fileGround(...where)
    executions = ground.executions
    return ground
  })
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1' })
  const agent = noted(hostId)
  const { hello } = agent.link
  Object.assign(hello?.capabilities ?? {}, { files: true })
  await engine.linked(agent.link)
  const begun = await context.files.begin({ userId: 1, size: null, sha256: null, isSecret: false })
  await context.files.add(begun, { bytes: text(), length: null, offset: 0, end: true })
  const stdin = { fileId: begun.id }
  await services.tasks.create({
    script: { content: 'cat' },
    stdin,
    limitRate,
    target: { hostIds: [hostId] },
  })
  await until('the execution is sent', () => agent.executions.length === 1)
  if (executions === undefined) throw new Error('there is no ground')
  return { context, executions, hostId, fileId: begun.id }
}

test("P54 with a backlog over 20 s of a task's rate, reads of its file must retry later, until readers leave", async (t) => {
  const { context, hostId, fileId } = await reading(t)
  const { transfers } = context
  const { rate } = await transfers.forAgent(hostId, fileId)
  const leave = new AbortController()
  const waiting = rate?.take(60 * limitRate, leave.signal)
  const refused = await t.throwsAsync(transfers.forAgent(hostId, fileId), { code: 'unavailable' })
  t.like(refused, { retryAfter: 15 })
  leave.abort()
  await t.throwsAsync(waiting ?? Promise.resolve(), { name: 'AbortError' })
  t.is((await transfers.forAgent(hostId, fileId)).rate, rate)
})

test('P54 concurrent reads of a file share the rate of its task, even while the servers are being counted', async (t) => {
  const { context, executions, hostId, fileId } = await reading(t)
  const { store, files, facts, clock } = context
  const shared = { servers: async () => [] }
  const carried = createCarried({ executions, facts, clock })
  const transfers = createTransfers({ store, executions, files, carried, shared, facts, clock })
  const asked = await Promise.all([1, 2, 3].map(() => transfers.forAgent(hostId, fileId)))
  t.is(new Set(asked.map(({ rate }) => rate)).size, 1)
})
