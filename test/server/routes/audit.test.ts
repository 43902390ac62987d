import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { type AuditEntry, AuditVerifier, verifyAudit } from '../../../src/core/audit.ts'
import { sha256 } from '../../../src/disk/digest.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'
import { finished } from '../../helpers/clients/tasks.ts'
import { appShows } from '../../helpers/clients/totp.ts'
import { adminLogin, adminPassword, startTestServer, type TestServer } from '../../helpers/servers/server.ts'

/** The log on disk, oldest first, without an entry that is just being written. */
async function onDisk(server: TestServer): Promise<AuditEntry[]> {
  const text = await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8')
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEntry)
}

async function last(server: TestServer, action: string): Promise<AuditEntry> {
  const found = (await onDisk(server)).findLast((entry) => entry.action === action)
  if (!found) throw new Error(`no ${action} in the audit log`)
  return found
}

/** Every action that an operation of the application declares. */
function declaredActions(): string[] {
  const found = operationsOfTheApp().flatMap(({ operation: { audit } }) => (audit ? [audit.action] : []))
  return [...new Set(found)].sort()
}

/** Makes calls, some of them refused, and returns their entries. */
async function commandsOf(server: TestServer): Promise<string[]> {
  const { hostId } = await server.enroll('web1')
  const long = `echo ${'x'.repeat(300)}`
  const verify = { script: { content: 'true' } }
  const task = {
    script: { content: `# a comment\n${long}\nsecond line` },
    verify,
    target: { hostIds: [hostId] },
  }
  await server.data('POST', '/api/tasks', task)
  await server.api('POST', '/api/tasks', {
    ...task,
    script: { content: 'refused' },
    target: { hostIds: [99] },
  })
  await server.data('POST', '/api/scripts', { name: 'a', type: 'BASH', content: 'uptime' })
  await server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24, command: 'top' })
  return (await onDisk(server)).flatMap(({ action, detail: { firstLine, verifyFirstLine, command } }) =>
    [firstLine, verifyFirstLine, command].flatMap((line) =>
      line === undefined ? [] : [`${action} ${String(line)}`],
    ),
  )
}

test('entries contain the first line of what ran, shortened, even for refused calls', async (t) => {
  const found = await commandsOf(await startTestServer(t))
  t.deepEqual(found.toSorted(), [
    'script.create uptime',
    `task.create echo ${'x'.repeat(195)}…`,
    'task.create refused',
    'task.create true',
    'task.create true',
    'terminal.open top',
  ])
})

test('a server configured to omit commands from its audit log keeps only their digests', async (t) => {
  const server = await startTestServer(t, { auditCommands: false })
  t.deepEqual(await commandsOf(server), [])
  const text = await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8')
  t.notRegex(text, /echo x|refused"|uptime|"top"/)
  t.is((await last(server, 'script.create')).detail['sha256'], sha256('uptime'))
})

test('every audited operation leaves an entry on disk before its answer: user, address, object, outcome', async (t) => {
  const server = await startTestServer(t)
  const admin = { type: 'user', id: 1, name: 'admin' }
  const tried = new Set<string>()
  async function leaves(
    action: string,
    wanted: object,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<any> {
    const before = (await onDisk(server)).length
    const answer = await server.api(method, path, body)
    const added = (await onDisk(server)).slice(before).filter((entry) => entry.action === action)
    t.is(added.length, 1, `${method} ${path}`)
    const outcome = answer.status < 300 ? 'SUCCESS' : 'FAILED'
    t.like(added[0], { actor: admin, ip: '127.0.0.1', outcome, ...wanted }, `${method} ${path}`)
    t.like(added[0]?.detail, { requestId: answer.headers.get('x-request-id'), status: answer.status })
    t.is(typeof added[0]?.actor.tokenId, 'number')
    tried.add(action)
    return answer.body.data
  }

  const { id: user } = await leaves(
    'user.create',
    { object: { type: 'user', id: 2, name: 'eve' }, detail: { role: 'VIEWER', rights: ['hosts:remove'] } },
    'POST',
    '/api/users',
    { username: 'eve', password: 'a secret word', role: 'VIEWER', rights: ['hosts:remove'] },
  )
  await leaves(
    'user.update',
    {
      object: { type: 'user', id: user, name: 'eve' },
      detail: { changed: ['password', 'email', 'rights'], rights: [] },
    },
    'PATCH',
    `/api/users/${user}`,
    { password: 'another secret word', email: 'eve@example.com', rights: [] },
  )
  await leaves(
    'user.delete',
    { object: { type: 'user', id: user, name: 'eve' } },
    'DELETE',
    `/api/users/${user}`,
  )
  const { id: token } = await leaves(
    'token.create',
    { object: { type: 'token', name: 'ci' }, detail: { role: 'ADMIN', admin: true } },
    'POST',
    '/api/tokens',
    { name: 'ci', admin: true },
  )
  await leaves(
    'token.delete',
    { object: { type: 'token', id: token, name: 'ci' } },
    'DELETE',
    `/api/tokens/${token}`,
  )
  await server.data('POST', '/api/auth/login', adminLogin)
  const logins = (await server.data('GET', '/api/auth/sessions')).content as {
    id: number
    current: boolean
  }[]
  const other = logins.find(({ current }) => !current)
  await leaves(
    'session.delete',
    { object: { type: 'session', id: other?.id } },
    'DELETE',
    `/api/auth/sessions/${other?.id}`,
  )
  await leaves(
    'session.deleteOthers',
    { object: { type: 'user', name: 'admin' } },
    'DELETE',
    '/api/auth/sessions',
  )
  const { secret } = await leaves(
    'totp.create',
    { object: { type: 'user', name: 'admin' } },
    'POST',
    '/api/auth/totp',
    { currentPassword: adminPassword },
  )
  for (const [action, path, ahead] of [
    ['totp.confirm', '/api/auth/totp/confirm', 0],
    ['totp.remove', '/api/auth/totp/remove', 1],
  ] as const)
    await leaves(action, { object: { type: 'user', name: 'admin' } }, 'POST', path, {
      code: appShows(secret, ahead),
    })
  const { id: enrollmentId, token: enrollment } = await leaves(
    'enrollment.create',
    { object: { type: 'enrollment', name: 'rack 1' }, detail: { maxUses: 5 } },
    'POST',
    '/api/enrollment-tokens',
    { name: 'rack 1', maxUses: 5 },
  )
  const registered = await server.api(
    'POST',
    '/api/agent/register',
    { agentId: 'agent-9', hostname: 'web9' },
    { authorization: `Bearer ${enrollment}` },
  )
  t.like(await last(server, 'agent.register'), {
    actor: { type: 'enrollment', id: enrollmentId, name: 'rack 1', tokenId: null },
    object: { type: 'agent', id: 'agent-9', name: 'web9' },
    outcome: 'SUCCESS',
    detail: { hostId: registered.body.data.hostId },
  })
  tried.add('agent.register')
  await leaves(
    'agent.revoke',
    { object: { type: 'host', id: registered.body.data.hostId, name: 'web9' } },
    'DELETE',
    `/api/hosts/${registered.body.data.hostId}/agent`,
  )
  t.like(await last(server, 'agent.tokenEnd'), {
    actor: { type: 'system' },
    object: { type: 'agent', id: 'agent-9' },
  })
  await leaves(
    'enrollment.delete',
    { object: { type: 'enrollment', id: enrollmentId, name: 'rack 1' } },
    'DELETE',
    `/api/enrollment-tokens/${enrollmentId}`,
  )
  const { id: host } = await leaves(
    'host.create',
    { object: { type: 'host', name: 'db1' } },
    'POST',
    '/api/hosts',
    {
      hostname: 'db1',
      ip: '10.0.0.1',
      authType: 'PASSWORD',
      username: 'root',
      password: 'hidden host password',
    },
  )
  await leaves(
    'host.create',
    { object: { type: 'host', id: null, name: 'db1' }, detail: { status: 409 } },
    'POST',
    '/api/hosts',
    { hostname: 'db1', ip: '10.0.0.1' },
  )
  await leaves(
    'host.update',
    { object: { type: 'host', id: host, name: 'db1' }, detail: { changed: ['tags'] } },
    'PATCH',
    `/api/hosts/${host}`,
    { tags: { role: 'db' } },
  )
  await leaves(
    'host.install',
    {
      object: { type: 'host', id: host, name: 'db1' },
      detail: { type: 'INSTALL', hostCount: 1, sudo: true },
    },
    'POST',
    `/api/hosts/${host}/install-agent`,
    { sudo: true, async: false },
  )
  const { id: script } = await leaves(
    'script.create',
    { object: { type: 'script', id: 1, name: 'uptime' } },
    'POST',
    '/api/scripts',
    { name: 'uptime', type: 'BASH', content: '#!/bin/sh\necho first line\necho hidden content' },
  )
  await leaves(
    'script.update',
    { object: { type: 'script', id: script, name: 'uptime' }, detail: { changed: ['content'] } },
    'PATCH',
    `/api/scripts/${script}`,
    { content: 'uptime' },
  )
  const { id: cluster } = await leaves(
    'cluster.create',
    { object: { type: 'cluster', id: 1, name: 'dbs' } },
    'POST',
    '/api/clusters',
    { name: 'dbs', hostIds: [host] },
  )
  await leaves(
    'cluster.update',
    { object: { type: 'cluster', id: cluster, name: 'dbs' }, detail: { changed: ['description'] } },
    'PATCH',
    `/api/clusters/${cluster}`,
    { description: 'x' },
  )
  const { id: webhook } = await leaves(
    'webhook.create',
    {
      object: { type: 'webhook', id: 1, name: 'on call' },
      detail: {
        format: 'SLACK',
        enabled: true,
        events: ['task.failed'],
        selector: 'db1',
        origin: 'https://alerts.example.org',
      },
    },
    'POST',
    '/api/webhooks',
    {
      name: 'on call',
      url: 'https://alerts.example.org/hidden-url',
      events: ['task.failed'],
      selector: 'db1',
      secret: `whsec_${Buffer.from('hidden secret of a webhook').toString('base64')}`,
      format: 'SLACK',
    },
  )
  await leaves(
    'webhook.update',
    { object: { type: 'webhook', id: webhook, name: 'on call' }, detail: { changed: ['url'] } },
    'PATCH',
    `/api/webhooks/${webhook}`,
    { url: 'https://localhost/hidden-url' },
  )
  await leaves(
    'webhook.test',
    { object: { type: 'webhook', id: webhook, name: 'on call' }, detail: { delivered: false } },
    'POST',
    `/api/webhooks/${webhook}/test`,
  )
  await leaves(
    'webhook.delete',
    { object: { type: 'webhook', id: webhook, name: 'on call' } },
    'DELETE',
    `/api/webhooks/${webhook}`,
  )
  const { id: schedule } = await leaves(
    'schedule.create',
    {
      object: { type: 'schedule', id: 1, name: 'nightly' },
      detail: {
        cron: '0 3 29 2 *',
        hosts: ['db1'],
        exclude: ['web*'],
        firstLine: 'echo first line',
      },
    },
    'POST',
    '/api/schedules',
    {
      name: 'nightly',
      cron: '0 3 29 2 *',
      script: { content: '#!/bin/sh\necho first line\necho hidden content' },
      target: { hosts: ['db1'], exclude: ['web*'] },
      secretParams: { KEY: 'hidden secret' },
    },
  )
  await leaves(
    'schedule.update',
    { object: { type: 'schedule', id: schedule, name: 'nightly' }, detail: { changed: ['enabled'] } },
    'PATCH',
    `/api/schedules/${schedule}`,
    { enabled: false },
  )
  await leaves(
    'schedule.run',
    {
      object: { type: 'schedule', id: schedule, name: 'nightly' },
      detail: { hostCount: 1, firstLine: 'echo first line' },
    },
    'POST',
    `/api/schedules/${schedule}/run`,
  )
  await leaves(
    'schedule.delete',
    { object: { type: 'schedule', id: schedule, name: 'nightly' } },
    'DELETE',
    `/api/schedules/${schedule}`,
  )
  await leaves(
    'task.create',
    { detail: { scriptId: script, scriptName: 'uptime', clusterId: cluster, hostCount: 1 } },
    'POST',
    `/api/clusters/${cluster}/execute`,
    { scriptId: script },
  )
  await leaves(
    'task.create',
    { detail: { scriptId: script, scriptVersion: 2, hostIds: [String(host)], sha256: sha256('uptime') } },
    'POST',
    `/api/scripts/${script}/execute`,
    { hostIds: [host] },
  )
  const { taskId } = await leaves(
    'task.create',
    {
      object: { type: 'task', name: null },
      detail: {
        selector: 'db1',
        hostCount: 1,
        firstLine: 'id',
        sha256: sha256('id'),
        runAs: 'nobody',
        limits: 'memory 64 MB, processes 10',
        strategy: 'SEQUENTIAL',
      },
    },
    'POST',
    '/api/tasks',
    {
      script: { content: 'id' },
      target: { selector: 'db1' },
      secretParams: { KEY: 'hidden param' },
      runAs: 'nobody',
      limits: { memoryMB: 64, processes: 10 },
      strategy: 'SEQUENTIAL',
      queueSeconds: 1000,
    },
  )
  await leaves(
    'task.cancel',
    { object: { type: 'task', id: taskId, name: null } },
    'POST',
    `/api/tasks/${taskId}/cancel`,
  )
  await finished(server, taskId)
  const retried = await leaves(
    'task.retry',
    { detail: { retryOf: taskId, hostCount: 1 } },
    'POST',
    `/api/tasks/${taskId}/retry`,
    { secretParams: { KEY: 'hidden param' } },
  )
  t.is((await last(server, 'task.retry')).object?.id, retried.taskId)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { terminal: true } })
  agent.serveTerminals()
  const { fileId, sha256: fileSha256 } = await leaves(
    'file.upload',
    {
      object: { type: 'file', name: 'empty.conf' },
      detail: { sha256: sha256(''), size: 0, isSecret: false },
    },
    'POST',
    '/api/files?size=0&name=empty.conf',
  )
  t.is((await last(server, 'file.upload')).object?.id, fileId)
  const { fileId: needless } = (await server.data('POST', '/api/files?size=0')) as { fileId: string }
  await leaves('file.delete', { object: { type: 'file', id: needless } }, 'DELETE', `/api/files/${needless}`)
  const copy = { fileId, path: '/srv/%h', kind: 'FILE', mode: '0640', owner: 'app', backup: true }
  const copied = { ...copy, fileName: 'empty.conf', fileSize: 0, fileSha256 }
  await leaves(
    'schedule.create',
    { detail: { ...copied, selector: 'web1', at: '2099-01-01T00:00:00.000Z', overlap: 'QUEUE' } },
    'POST',
    '/api/schedules',
    { name: 'sync', at: '2099-01-01T00:00:00.000Z', overlap: 'QUEUE', copy, target: { selector: 'web1' } },
  )
  await leaves(
    'schedule.update',
    {
      detail: {
        fileId,
        fileSize: 0,
        firstLine: 'cat',
        sha256: sha256('cat'),
        verifyFirstLine: 'true',
        verifySha256: sha256('true'),
      },
    },
    'PATCH',
    '/api/schedules/2',
    { script: { content: 'cat' }, stdin: { fileId }, verify: { script: { content: 'true' } } },
  )
  await leaves(
    'task.create',
    {
      detail: {
        type: 'COPY',
        firstLine: 'copy to /srv/%h',
        ...copied,
        hostIds: [String(identity.hostId)],
        hostCount: 1,
        limitRate: 20_000,
      },
    },
    'POST',
    '/api/tasks',
    { copy, target: { hostIds: [identity.hostId] }, limitRate: 20_000 },
  )
  await leaves(
    'task.file',
    { object: { type: 'task', id: taskId, name: null }, detail: { hostId: '7', status: 404 } },
    'GET',
    `/api/tasks/${taskId}/files/7`,
  )
  const { sessionId } = await leaves(
    'terminal.open',
    {
      object: { type: 'terminal', name: 'web1' },
      detail: {
        hostId: identity.hostId,
        runAs: 'nobody',
        command: 'id',
        commandSha256: sha256('id'),
        commandLength: 2,
      },
    },
    'POST',
    '/api/terminals',
    { hostId: identity.hostId, cols: 80, rows: 24, runAs: 'nobody', command: 'id' },
  )
  const session = { type: 'terminal', id: sessionId, name: 'web1' }
  t.deepEqual((await last(server, 'terminal.open')).object, session)
  const ticket = `/api/terminals/${sessionId}/ticket`
  await leaves('terminal.ticket', { object: session, detail: { watch: true } }, 'POST', ticket, {
    watch: true,
  })
  await leaves('terminal.recording', { object: session }, 'GET', `/api/terminals/${sessionId}/recording`)
  await leaves('terminal.end', { object: session }, 'DELETE', `/api/terminals/${sessionId}`)
  t.like(await last(server, 'terminal.close'), {
    actor: { type: 'system' },
    object: session,
    detail: { hostId: identity.hostId, user: 'admin', exitCode: null, reason: 'ended by admin' },
  })
  await leaves(
    'script.delete',
    { object: { type: 'script', id: script, name: 'uptime' } },
    'DELETE',
    `/api/scripts/${script}`,
  )
  await leaves(
    'cluster.delete',
    { object: { type: 'cluster', id: cluster, name: 'dbs' } },
    'DELETE',
    `/api/clusters/${cluster}`,
  )
  await leaves(
    'host.delete',
    { object: { type: 'host', id: host, name: 'db1' }, detail: { force: true } },
    'DELETE',
    `/api/hosts/${host}?force=true`,
  )
  await leaves('server.backup', { object: { type: 'server' } }, 'GET', '/api/server/backup')
  await leaves(
    'user.password',
    { object: { type: 'user', id: 1, name: 'admin' } },
    'POST',
    '/api/auth/password',
    {
      currentPassword: adminPassword,
      newPassword: 'the next secret word',
    },
  )
  const login = await server.api('POST', '/api/auth/login', {
    username: 'admin',
    password: 'the next secret word',
  })
  t.like(await last(server, 'user.login'), {
    actor: { type: 'user', id: 1, name: 'admin' },
    object: { type: 'user', id: 1, name: 'admin' },
    outcome: 'SUCCESS',
  })
  tried.add('user.login')
  server.token = login.body.data.token
  await leaves('user.logout', { object: { type: 'user', id: 1, name: 'admin' } }, 'POST', '/api/auth/logout')

  t.deepEqual([...tried].sort(), declaredActions())
  const text = await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8')
  t.notRegex(text, /secret word|hidden|rsm_(ses|pat|agt|enr)_|eve@example/)
})

test('refused and failed calls are recorded: missing token or right, wrong password, foreign object', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/users', { username: 'vic', password: 'long enough', role: 'VIEWER' })
  const { token } = await server.data('POST', '/api/auth/login', { username: 'vic', password: 'long enough' })
  const vic = { authorization: `Bearer ${token}` }

  await server.api('GET', '/api/hosts', undefined, { authorization: '' })
  t.like(await last(server, 'access.refuse'), {
    actor: { type: 'anonymous', id: null },
    outcome: 'REFUSED',
    object: null,
    detail: { status: 401, method: 'GET', route: '/api/hosts' },
  })
  await server.api('GET', '/api/no/such/path', undefined, { authorization: '' })
  t.like(await last(server, 'access.refuse'), { detail: { status: 401, route: 'unknown' } })
  await server.api('GET', '/api/audit', undefined, vic)
  t.like(await last(server, 'access.refuse'), {
    actor: { type: 'user', name: 'vic' },
    detail: { status: 403, route: '/api/audit' },
  })
  await server.api('DELETE', '/api/users/1', undefined, vic)
  t.like(await last(server, 'user.delete'), {
    actor: { type: 'user', name: 'vic' },
    outcome: 'REFUSED',
    object: { type: 'user', id: 1 },
    detail: { status: 403 },
  })
  await server.api('POST', '/api/auth/login', { username: 'admin', password: 'not the password' })
  t.like(await last(server, 'user.login'), {
    actor: { type: 'anonymous' },
    outcome: 'REFUSED',
    object: { type: 'user', id: null, name: 'admin' },
    detail: { status: 401 },
  })
  const agent = await server.enroll('web1')
  await server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId: 'another', status: 'HEALTHY' },
    { authorization: `Bearer ${agent.token}` },
  )
  t.like(await last(server, 'access.refuse'), {
    actor: { type: 'agent', id: 'agent-web1', name: 'agent-web1' },
    detail: { status: 403, route: '/api/agent/heartbeat' },
  })
  const before = (await onDisk(server)).length
  await server.api(
    'POST',
    '/api/agent/heartbeat',
    { agentId: agent.agentId, status: 'HEALTHY' },
    {
      authorization: `Bearer ${agent.token}`,
    },
  )
  await server.data('GET', '/api/hosts')
  t.is((await onDisk(server)).length, before, 'reads and heartbeats leave no entry')
  t.notRegex(await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8'), /not the password/)
})

test('any number of calls without a token cannot keep refused logins out of the log', async (t) => {
  const server = await startTestServer(t)
  for (let at = 0; at < 65; at++) await server.api('GET', '/api/hosts', undefined, { authorization: '' })
  for (let at = 0; at < 8; at++)
    await server.api('POST', '/api/auth/login', { username: 'admin', password: `guess number ${at}` })
  const refused = (await onDisk(server)).filter(({ outcome }) => outcome === 'REFUSED')
  t.is(refused.filter(({ action }) => action === 'user.login').length, 8)
  t.is(refused.filter(({ action }) => action === 'access.refuse').length, 60)
})

test('S03 an attempt to take over a host by its agentId is refused and recorded', async (t) => {
  const server = await startTestServer(t)
  await server.enroll('web1')
  const { id, token } = await server.data('POST', '/api/enrollment-tokens', {})
  const headers = { authorization: `Bearer ${token}` }
  const body = { agentId: 'agent-web1', hostname: 'web1' }
  t.is((await server.api('POST', '/api/agent/register', body, headers)).status, 409)
  t.like(await last(server, 'agent.register'), {
    actor: { type: 'enrollment', id },
    object: { type: 'agent', id: 'agent-web1', name: 'web1' },
    outcome: 'FAILED',
    detail: { status: 409 },
  })
})

test('P37 S05 refused upgrades, foreign frames, rejected signatures and the end of a task are recorded', async (t) => {
  const server = await startTestServer(t)
  const [first, second] = [await server.enroll('web1'), await server.enroll('web2')]
  await t.throwsAsync(ScriptedAgent.link(server, { ...first, token: 'rsm_agt_wrong' }), { message: /401/ })
  t.like(await last(server, 'access.refuse'), {
    actor: { type: 'anonymous' },
    ip: '127.0.0.1',
    detail: { status: 401, method: 'UPGRADE', route: '/ws/agent' },
  })
  await t.throwsAsync(ScriptedAgent.link(server, { ...first, token: second.token }), { message: /403/ })
  t.like(await last(server, 'access.refuse'), {
    actor: { type: 'agent', id: 'agent-web2' },
    detail: { status: 403 },
  })

  const runs = await ScriptedAgent.link(server, first)
  const other = await ScriptedAgent.link(server, second)
  const { taskId } = await server.data('POST', '/api/tasks', {
    script: { content: 'x', name: 'named' },
    target: { hostIds: [first.hostId] },
  })
  await runs.execution(taskId)
  other.output(taskId, 0, 'not mine')
  await other.settled()
  await server.data('POST', '/api/scripts', { name: 'after', type: 'BASH', content: 'x' })
  t.like(await last(server, 'agent.frame'), {
    actor: { type: 'agent', id: 'agent-web2' },
    object: { type: 'task', id: taskId },
    outcome: 'REFUSED',
  })
  runs.complete(taskId, 126, { lastSequence: -1, error: 'signature does not verify' })
  await runs.released(taskId)
  await finished(server, taskId)
  await server.data('DELETE', `/api/scripts/1`)
  t.like(await last(server, 'task.end'), {
    actor: { type: 'system' },
    object: { type: 'task', id: taskId, name: 'named' },
    outcome: 'FAILED',
    detail: { status: 'FAILED', hostCount: 1, FAILED: 1 },
  })
  t.like(await last(server, 'agent.distrust'), {
    actor: { type: 'agent', id: 'agent-web1' },
    object: { type: 'task', id: taskId },
    outcome: 'REFUSED',
    detail: { hostId: first.hostId, message: 'signature does not verify' },
  })
  await Promise.all([runs.cut(), other.cut()])
})

test('a task started with async:false is recorded when it starts, not when it ends', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const waiting = server.data('POST', '/api/tasks', {
    script: { content: 'sleep 60' },
    target: { hostIds: [identity.hostId] },
    async: false,
  })
  const { taskId } = await agent.execution()
  // Entries are in order: when this one is on disk, so is the one before.
  await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'x' })
  t.like(await last(server, 'task.create'), { object: { id: taskId }, detail: { taskId, hostCount: 1 } })
  agent.complete(taskId, 0, { lastSequence: -1 })
  t.is((await waiting).status, 'SUCCESS')
  t.is((await onDisk(server)).filter(({ action }) => action === 'task.create').length, 1)
  await agent.cut()
})

test('an entry contains what was granted or created, even values that the request omitted', async (t) => {
  const server = await startTestServer(t)
  const token = await server.data('POST', '/api/tokens', { name: 'ci' })
  t.like((await last(server, 'token.create')).detail, { role: 'ADMIN', expiresAt: token.expiresAt })
  const enrollment = await server.data('POST', '/api/enrollment-tokens', {})
  const { maxUses, expiresAt } = enrollment
  t.like((await last(server, 'enrollment.create')).detail, { maxUses, expiresAt })
  const script = await server.data('POST', '/api/scripts', { name: 's', type: 'BASH', content: 'x' })
  t.like((await last(server, 'script.create')).detail, { version: 1, sha256: script.sha256 })
  const changed = await server.data('PATCH', `/api/scripts/${script.id}`, { content: 'y' })
  t.not(changed.sha256, script.sha256)
  t.like((await last(server, 'script.update')).detail, { version: 2, sha256: changed.sha256 })
  await server.data('POST', '/api/users', { username: 'vic', password: 'long enough', role: 'VIEWER' })
  t.like((await last(server, 'user.create')).detail, { role: 'VIEWER', enabled: true })
})

test('a call repeated with its Idempotency-Key leaves an entry marked as replayed', async (t) => {
  const server = await startTestServer(t)
  const { hostId } = await server.enroll('web1')
  const body = { script: { content: 'x' }, target: { hostIds: [hostId] }, queueSeconds: 1000 }
  const key = { 'idempotency-key': 'once' }
  const [first, second] = await Promise.all([
    server.api('POST', '/api/tasks', body, key),
    server.api('POST', '/api/tasks', body, key),
  ])
  await server.api('POST', '/api/tasks', body, key)
  const { taskId } = first.body.data
  t.is(second.body.data.taskId, taskId)
  const entries = (await onDisk(server)).filter(({ action }) => action === 'task.create')
  t.is(entries.length, 3)
  t.is(entries.filter(({ detail }) => detail['replayed'] === true).length, 2)
  for (const { object, outcome } of entries) t.deepEqual([object?.id, outcome], [taskId, 'SUCCESS'])
})

test('F12 two agents with one identity are recorded', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  for (let turn = 0; turn < 4; turn++) await ScriptedAgent.link(server, identity)
  await server.data('POST', '/api/scripts', { name: 'after', type: 'BASH', content: 'x' })
  t.like(await last(server, 'agent.duplicate'), {
    actor: { type: 'system' },
    object: { type: 'host', id: identity.hostId, name: 'web1' },
    outcome: 'REFUSED',
  })
})

for (const [what, change] of [
  ['removed', () => ''],
  ['cut at a line', (text: string) => text.split('\n').slice(0, 3).join('\n').concat('\n')],
] as const)
  test(`S11 a log ${what} while the server was down is reported at the next start`, async (t) => {
    const server = await startTestServer(t, { logLevel: 'ERROR' })
    await server.stop()
    const path = join(server.dataDir, 'audit', 'audit.log')
    const text = await readFile(path, 'utf8')
    if (what === 'removed') await rm(path)
    else await writeFile(path, change(text))
    await server.restart()
    const gap = await last(server, 'audit.gap')
    t.is(gap.outcome, 'FAILED')
    t.regex(
      String(gap.detail['message']),
      /^the audit log ends at entry \d+, the head noted was \d+:[0-9a-f]{64}$/,
    )
    await server.restart()
    t.is(
      (await onDisk(server)).filter(({ action }) => action === 'audit.gap').length,
      1,
      'it is reported once',
    )
  })

test('all runs of a server form one valid chain: begin, first admin, start, stop, start', async (t) => {
  const server = await startTestServer(t)
  await server.restart()
  const entries = await onDisk(server)
  t.deepEqual(
    entries.map(({ action }) => action),
    ['audit.begin', 'user.create', 'server.start', 'user.login', 'server.stop', 'server.start'],
  )
  t.like(entries[1], {
    actor: { type: 'system' },
    object: { type: 'user', name: 'admin' },
    detail: { first: true },
  })
  const response = await fetch(`${server.url}/api/audit`, {
    headers: { authorization: `Bearer ${server.token}`, accept: 'application/x-ndjson' },
  })
  t.is(response.headers.get('content-type'), 'application/x-ndjson; charset=utf-8')
  const bytes = Buffer.from(await response.arrayBuffer())
  t.deepEqual(bytes, await readFile(join(server.dataDir, 'audit', 'audit.log')))
  async function* once() {
    yield bytes
  }
  const verifier = new AuditVerifier(sha256)
  t.is(await verifyAudit(once(), verifier), null)
  t.is(verifier.entries, 6)
})

test('the raw audit log continues after a given entry, and filters return entries exactly as stored', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/scripts', { name: 'one', type: 'BASH', content: 'x' })
  const stored = (await readFile(join(server.dataDir, 'audit', 'audit.log'), 'utf8')).split('\n')
  const raw = async (query: string) => {
    const response = await fetch(`${server.url}/api/audit?${query}`, {
      headers: { authorization: `Bearer ${server.token}`, accept: 'application/x-ndjson' },
    })
    return (await response.text()).split('\n')
  }
  t.deepEqual(await raw('after=3'), stored.slice(3))
  t.deepEqual(await raw('after=99'), [''])
  const ofAdmin = stored.filter((line) => line.includes('"action":"script.create"'))
  t.deepEqual(await raw('action=script.create'), [...ofAdmin, ''])
  t.deepEqual(await raw('action=script.create&after=1&outcome=SUCCESS'), [...ofAdmin, ''])
  t.deepEqual(await raw('to=2020-01-01T00:00:00Z'), [''])
})

test('GET /api/audit lists newest first, accepts filters, and names invalid ones', async (t) => {
  const server = await startTestServer(t)
  await server.data('POST', '/api/scripts', { name: 'one', type: 'BASH', content: 'x' })
  const page = await server.data('GET', '/api/audit?size=2')
  t.deepEqual(
    page.content.map(({ action }: AuditEntry) => action),
    ['script.create', 'user.login'],
  )
  t.like(page, { page: 0, size: 2, totalElements: 5, totalPages: 3 })
  const only = await server.data('GET', '/api/audit?actor=admin&objectType=script&objectId=1&outcome=SUCCESS')
  t.is(only.totalElements, 1)
  const older = await server.data('GET', `/api/audit?size=2&before=${page.content[1].id}`)
  t.deepEqual(
    older.content.map(({ action }: AuditEntry) => action),
    ['server.start', 'user.create'],
  )
  t.is((await server.api('GET', '/api/audit?outcome=GOOD')).status, 400)
  const raw = await server.api('GET', '/api/audit?actor=admin&size=3', undefined, {
    accept: 'application/x-ndjson',
  })
  t.is(raw.status, 400)
  t.deepEqual(
    raw.body.errors?.map(({ field }: { field: string }) => field),
    ['size'],
  )
  t.deepEqual((await server.api('GET', '/api/audit?after=3')).body.errors, [
    { field: 'after', message: 'requires Accept: application/x-ndjson' },
  ])
  t.is((await server.api('GET', '/api/audit?user=admin')).body.errors?.[0]?.field, 'user')
})
