import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openJsonStore } from '../../../src/server/storage/files/store/store.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

/** A stopped server with an agent, credentials of a host, and a pending task with secrets. */
async function used(t: ExecutionContext) {
  const server = await startTestServer(t)
  const { hostId, agentId, token } = await server.enroll('web1')
  const { id } = await server.data('POST', '/api/hosts', {
    hostname: 'by-ssh',
    ip: '10.0.0.9',
    authType: 'PASSWORD',
    username: 'root',
    password: 'pass word',
  })
  const taskId = await startTask(server, [hostId], {
    queueSeconds: 3600,
    secretParams: { SECRET: 'hidden' },
    script: { content: 'echo $SECRET' },
  })
  const url = 'https://alerts.example.org/'
  await server.data('POST', '/api/webhooks', { name: 'call', url, events: ['task.ended'] })
  await server.stop()
  return { server, hostId, sshHostId: id as number, taskId, identity: { hostId, agentId, token } }
}

async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(path, bytes)
}

const keysOf = (dataDir: string, name: string) => join(dataDir, 'keys', name)

const harms = [
  ['is missing', (path: string) => rm(path)],
  ['is damaged by one bit', (path: string) => flip(path, 28)],
  ['is damaged: empty', (path: string) => writeFile(path, '')],
] as const

for (const name of ['seal.key', 'signing.key'])
  for (const [how, harm] of harms)
    test(`A05 a ${name} that ${how} beside a store is refused with path and advice; the server works once it is restored`, async (t) => {
      const { server, hostId } = await used(t)
      const path = keysOf(server.dataDir, name)
      const kept = await readFile(path)
      await harm(path)
      const error = await t.throwsAsync<Error & { hint?: string }>(server.restart())
      t.true(
        error?.message.startsWith(`${path} is ${how.includes('missing') ? 'missing' : 'damaged'}`),
        error?.message,
      )
      t.regex(
        error?.hint ?? '',
        /^nothing was changed; restore it .*`rsm server start --new-keys`; .* (?:lost|again)$/,
      )
      await writeFile(path, kept, { mode: 0o600 })
      await server.restart()
      t.is((await server.data('GET', `/api/hosts/${hostId}`)).hostname, 'web1')
    })

test('A05 --new-keys replaces a lost signing key: agents must enroll again, and sealed secrets stay', async (t) => {
  const { server: former, hostId, sshHostId, identity, taskId } = await used(t)
  await rm(keysOf(former.dataDir, 'signing.key'))
  const server = await startTestServer(t, { dataDir: former.dataDir, newKeys: true })
  const { content } = await server.data('GET', '/api/audit?action=keys.replace')
  t.deepEqual(content[0].detail, {
    keys: ['signing.key'],
    agents: ['web1'],
    credentials: [],
    tasks: [],
    webhooks: [],
  })
  t.regex((await server.data('GET', `/api/hosts/${hostId}`)).statusReason, /revoked/)
  await t.throwsAsync(ScriptedAgent.link(server, identity), { message: /refused with 401/ })
  t.is((await server.data('GET', `/api/hosts/${sshHostId}`)).authType, 'PASSWORD')
  // If --new-keys stays in a unit file, it replaces no further keys.
  const made = await readFile(keysOf(server.dataDir, 'signing.key'))
  await server.restart()
  t.deepEqual(await readFile(keysOf(server.dataDir, 'signing.key')), made)
  t.is((await server.data('GET', '/api/audit?action=keys.replace')).content.length, 1)
  const { token } = await server.data('POST', '/api/enrollment-tokens', { hostId })
  const agent = await realAgent(t, server, { enrollToken: token, hostname: 'web1' })
  t.is(agent.hostId, hostId)
  t.is((await finished(server, taskId)).status, 'SUCCESS')
})

test('A05 --new-keys replaces a damaged sealing key and keeps it aside: lost secrets are named and start nothing', async (t) => {
  const { server: former, sshHostId, identity, taskId } = await used(t)
  await flip(keysOf(former.dataDir, 'seal.key'), 0)
  const server = await startTestServer(t, { dataDir: former.dataDir, newKeys: true })
  const { content } = await server.data('GET', '/api/audit?action=keys.replace')
  t.deepEqual(content[0].detail, {
    keys: ['seal.key'],
    agents: [],
    credentials: ['by-ssh'],
    tasks: [taskId],
    webhooks: ['call'],
  })
  const outcome = await server.data('POST', '/api/webhooks/1/test')
  t.regex(outcome.error, /its secret cannot be decrypted/)
  t.is((await server.data('GET', `/api/hosts/${sshHostId}`)).authType, 'NONE')
  t.is(
    (await readdir(join(server.dataDir, 'keys'))).filter((name) => name.startsWith('seal.key.replaced-'))
      .length,
    1,
  )
  const agent = await ScriptedAgent.link(server, identity)
  const [result] = (await finished(server, taskId)).results
  t.is(result?.status, 'FAILED')
  t.is(result?.exitCode, 126)
  t.regex(result?.error ?? '', /^not started: the secret parameters of the task cannot be decrypted/)
  await agent.settled()
  t.false(
    agent.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'),
    'nothing was sent',
  )
})

test('A05 --keys creates missing keys in its directory for a new store; a used store accepts only its own keys', async (t) => {
  const place = await mkdtemp(join(tmpdir(), 'rsm-keys-'))
  t.teardown(() => rm(place, { recursive: true, force: true }))
  const [shared, other, nowhere] = ['shared', 'other', 'nowhere'].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ]
  const first = await startTestServer(t, { keysDir: shared })
  t.deepEqual((await readdir(shared)).toSorted(), ['seal.key', 'signing.key'])
  t.false((await readdir(first.dataDir)).includes('keys'))
  const second = await startTestServer(t, { keysDir: shared })
  const pinned = async (server: TestServer) => {
    const { token } = await server.data('POST', '/api/enrollment-tokens', {})
    const body = { agentId: 'a', hostname: 'h', agentVersion: 'test' }
    const { body: answer } = await server.api('POST', '/api/agent/register', body, {
      authorization: `Bearer ${token}`,
    })
    return answer.data.serverKey as string
  }
  t.is(await pinned(second), await pinned(first))
  await startTestServer(t, { keysDir: other })
  await first.stop()
  const { dataDir } = first
  const at = (keysDir: string) => startTestServer(t, { dataDir, keysDir })
  await t.throwsAsync(at(nowhere), {
    message: `${nowhere}/seal.key is missing, and the store was used with it`,
  })
  t.false((await readdir(place)).includes('nowhere'), 'no keys are created')
  await t.throwsAsync(at(other), { message: /other\/seal\.key is damaged, or is the key of another store/ })
  await at(shared)
})

test('A05 the first start after an upgrade records the existing keys, and is refused without keys', async (t) => {
  const { server } = await used(t)
  const forget = async () => {
    const store = await openJsonStore({ directory: join(server.dataDir, 'store') })
    await store.transact(async (tx) => {
      for (const id of ['seal.key', 'signing.key'] as const) tx.remove('keys', id)
    })
    await store.close()
  }
  await forget()
  await rename(join(server.dataDir, 'keys'), join(server.dataDir, 'elsewhere'))
  await t.throwsAsync(server.restart(), { message: /keys\/seal\.key is missing/ })
  await rename(join(server.dataDir, 'elsewhere'), join(server.dataDir, 'keys'))
  await server.restart()
  await server.stop()
  const store = await openJsonStore({ directory: join(server.dataDir, 'store') })
  const noted = (await store.query('keys')).items
  await store.close()
  t.deepEqual(
    noted.map(({ id }) => id),
    ['seal.key', 'signing.key'],
  )
  for (const { keyId } of noted) t.regex(keyId, /^[0-9a-f]{16}$/)
})
