import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'
import { copyingAgent, done, holds } from '../../helpers/agents/copying-agent.ts'
import { until } from '../../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.

test('P54 HELLO has the capability for files; a copy waits its turn, and a cancel ends its wait', async (t) => {
  const { server, agent, fileRoutes, copy, path, directory } = await copyingAgent(t, { maxExecutions: 1 })
  t.true(server.hellos[0]?.capabilities.files)
  server.execute(agent.agentId, {
    taskId: 'holds',
    script: `until [ -e ${directory}/go ]; do sleep 0.05; done`,
  })
  const file = fileRoutes.put('f1', 'text')
  const order = { file, path, kind: 'FILE' as const }
  server.order('COPY_FILE', agent.agentId, { taskId: 'waits', copy: order, mark: { run: 'r', sequence: 1 } })
  await until('it is received', () =>
    server.messages.some(({ type, payload }) => type === 'SCRIPT_RECEIVED' && payload.taskId === 'waits'),
  )
  server.order('COPY_FILE', agent.agentId, { taskId: 'cancelled', copy: { ...order, path: `${path}2` } })
  server.send('CANCEL_SCRIPT', { taskId: 'cancelled' })
  t.is((await server.completed('cancelled')).status, 'CANCELLED')
  server.send('CANCEL_SCRIPT', { taskId: 'holds' })
  t.like(await server.completed('waits'), { status: 'SUCCESS', changed: true })
  t.is(readFileSync(path, 'utf8'), 'text')
  holds(t, directory, 'file')
  t.like(await copy({ file, path }), { ...done, changed: false })
})

test('P19 an unsigned or altered file order writes and reads nothing', async (t) => {
  const { server, agent, fileRoutes, directory, path } = await copyingAgent(t)
  const copy = { file: fileRoutes.put('f1', 'text'), path, kind: 'FILE' as const }
  const sent: Record<string, unknown>[] = []
  const send = server.send.bind(server)
  server.send = (_type, payload) => void sent.push(payload as Record<string, unknown>)
  server.order('COPY_FILE', agent.agentId, { taskId: 'a', copy })
  server.order('FETCH_FILE', agent.agentId, { taskId: 'b', fetch: { path, kind: 'FILE', maxSize: 9 } })
  server.send = send
  const [copied = {}, fetched = {}] = sent
  const altered: [string, object][] = [
    ['COPY_FILE', { ...copied, copy: { ...copy, path: `${directory}/other` } }],
    ['COPY_FILE', { ...copied, copy: { ...copy, file: { ...copy.file, sha256: 'a'.repeat(64) } } }],
    ['COPY_FILE', { ...copied, runAs: 'root' }],
    ['FETCH_FILE', { ...copied, fetch: { path, kind: 'FILE', maxSize: 9 } }],
    ['FETCH_FILE', { ...fetched, fetch: { path: '/etc/shadow', kind: 'FILE', maxSize: 9 } }],
    ['EXECUTE_SCRIPT', { ...copied, script: 'id', params: {}, scriptType: 'BASH' }],
    ['COPY_FILE', { ...copied, signature: undefined }],
  ]
  for (const [nth, [type, payload]] of altered.entries()) {
    server.send(type, payload)
    const ends = () => [...server.of('a').completes, ...server.of('b').completes]
    await server.until(() => ends().length > nth, `order ${nth} is refused`)
    for (const { status, exitCode, error } of ends()) {
      t.like({ status, exitCode }, { status: 'FAILED', exitCode: 126 })
      t.regex(error ?? '', /^signature (does not verify|missing)/)
    }
  }
  // The agent accepts the order as it was signed.
  server.send('COPY_FILE', copied)
  await until('it is written', () => existsSync(path))
  t.is(fileRoutes.requests.length, 1)
  await server.until(
    () => server.of('a').completes.some(({ status }) => status === 'SUCCESS'),
    'success is reported',
  )
  holds(t, directory, 'file')
})

asRoot('an agent copies and fetches nothing as a user it may not run scripts as', async (t) => {
  const { fileRoutes, copy, fetch, directory, path } = await copyingAgent(t, { allowRunAs: ['no-such-user'] })
  const file = fileRoutes.put('f1', 'text')
  for (const end of [await copy({ file, path }, 'nobody'), await fetch({ path }, 'nobody')]) {
    t.like(end, { status: 'FAILED', exitCode: 126 })
    t.regex(end.error ?? '', /not allowed to run as nobody: the agent needs --allow-run-as nobody/)
  }
  t.regex(
    (await copy({ file, path }, 'no-such-user')).error ?? '',
    /there is no user no-such-user on this host/,
  )
  holds(t, directory)
})

asRoot(
  '--sandbox user copies only as users it may run scripts as, --sandbox strict copies nothing',
  async (t) => {
    const user = await copyingAgent(t, { sandbox: 'user', runAs: 'nobody', allowRunAs: ['root'] })
    const refused = await user.copy({ file: user.fileRoutes.put('f1', 'text'), path: user.path }, 'root')
    t.regex(refused.error ?? '', /not allowed to run as root: --sandbox user/)
    holds(t, user.directory)
    const strict = await copyingAgent(t, { sandbox: 'strict' }).catch((error: Error) => {
      t.regex(error.message, /not run scripts with --sandbox strict/)
      return null
    })
    if (strict === null) return
    const file = strict.fileRoutes.put('f1', 'text')
    for (const end of [
      await strict.copy({ file, path: strict.path }),
      await strict.fetch({ path: '/etc/hostname' }),
    ]) {
      t.like(end, { status: 'FAILED', exitCode: 126 })
      t.regex(end.error ?? '', /^this agent copies no files: its --sandbox strict/)
    }
    t.is(strict.fileRoutes.requests.length, 0)
  },
)
