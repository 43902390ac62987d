import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { readJoin } from '../../src/core/endpoint.ts'
import type { Host } from '../../src/core/protocol/http/hosts.ts'
import { envelope, hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

test('hosts edit changes the given fields and keeps the rest', async (t) => {
  const server = await startTestServer(t)
  const tags = { role: 'web', old: 'yes' }
  await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1', tags })
  const rsm = commandLine(t, server)
  const edited = await rsm(['hosts', 'edit', 'web1', '-t', 'zone=a', '-t', 'role=db', '--untag', 'old'])
  t.is(edited.stdout, 'changed web1 (id 1, role=db,zone=a)\n', edited.stderr)
  const key = join(temporaryDirectory(t), 'key')
  writeFileSync(key, 'a key')
  const options = ['--hostname', 'web2', '--ip', '192.0.2.2', '--ssh-port', '2222', '--user', 'ops']
  const ran = await rsm(['hosts', 'edit', '@id:1', ...options, '--private-key', key, '--json'])
  t.like(JSON.parse(ran.stdout) as Host, {
    hostname: 'web2',
    ip: '192.0.2.2',
    sshPort: 2222,
    username: 'ops',
    authType: 'PRIVATE_KEY',
    tags: { role: 'db', zone: 'a' },
  })
  const pin = `SHA256:${'A'.repeat(43)}`
  t.is((await rsm(['hosts', 'edit', 'web2', '--host-key', pin])).exit, 0)
  t.regex((await rsm(['hosts', 'show', 'web2'])).stdout, /^ssh host key +SHA256:A{43}$/m)
  const moved = await rsm(['hosts', 'edit', 'web2', '--ip', '192.0.2.3'])
  t.regex(moved.stderr, /the SSH credentials of web2 were removed: they were for the old address/)
  t.notRegex((await rsm(['hosts', 'show', 'web2'])).stdout, /key kept|SHA256/)
  await rsm(['hosts', 'edit', 'web2', '--host-key', pin])
  t.is((await rsm(['hosts', 'edit', 'web2', '--host-key', ''])).exit, 0)
  t.notRegex((await rsm(['hosts', 'show', 'web2'])).stdout, /SHA256/)
  t.is((await rsm(['hosts', 'list', '-o', 'nodeset'])).stdout, 'web2\n')
  const both = ['-t', 'zone=a', '-t', 'role=db']
  t.is((await rsm(['hosts', 'list', ...both, '-o', 'names'])).stdout, 'web2\n')
  const apart = await rsm(['hosts', 'list', '-t', 'role=web', '-t', 'role=db', '-o', 'names'])
  t.is(apart.stdout, '', 'no host has two values of one tag')
  for (const [argv, exit, said] of [
    [['web2'], 2, /nothing to change/],
    [['web2', '-t', 'a=b', '--untag', 'a'], 2, /both set and removed/],
    [['web3', '-t', 'a=b'], 5, /no such host: web3 \(did you mean web2\?\)/],
    [['web2', '--ip', 'x'], 2, /ip/],
  ] as const) {
    const refused = await rsm(['hosts', 'edit', ...argv])
    t.is(refused.exit, exit, refused.stderr)
    t.regex(refused.stderr, said)
  }
})

test('several hosts can be listed by name, edited, shown and removed at once; one failure does not stop the others', async (t) => {
  const hosts = [1, 2, 10].map((id) => hostNamed(id, `n${id}`))
  const server = await startFakeServer(t, {
    'GET /api/hosts': ({ query }, response) => {
      // Like a server that is too old to sort.
      if (query.has('sort'))
        return envelope(response, 400, { errors: [{ field: 'sort', message: 'unknown field' }] })
      return pageOf(query.get('selector') === 'n1' ? hosts.slice(0, 1) : [...hosts].reverse())
    },
    ...Object.fromEntries(
      hosts.map((host) => [`PATCH /api/hosts/${host.id}`, () => ({ ...host, tags: { x: 'y' } })]),
    ),
    'DELETE /api/hosts/1': () => ({ id: 1 }),
    'DELETE /api/hosts/2': (_, response) => envelope(response, 409, {}),
    'DELETE /api/hosts/10': () => ({ id: 10 }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'x' })
  const rsm = (...argv: string[]) => runRsm(['hosts', ...argv], env)
  const changed = 'changed 3 hosts: n[1-2,10]\n'
  t.is((await rsm('edit', 'n[1-2,10]', '-t', 'x=y')).stdout, changed)
  t.is((await rsm('list', '--limit', '2', '-o', 'names')).stdout, 'n1\nn2\n')
  t.is((await rsm('list', 'n1', '-w', 'n1', '-w', 'n[2,10]', '-o', 'nodeset')).stdout, 'n[1-2,10]\n')
  const renamed = await rsm('edit', 'n[1-2,10]', '--hostname', 'n3')
  t.is(renamed.exit, 2)
  t.regex(renamed.stderr, /^rsm: --hostname is for one host, not for 3\n/)
  const shown = JSON.parse((await rsm('show', 'n1', 'n[2,10]', '--json')).stdout) as Host[]
  t.deepEqual(
    shown.map(({ hostname }) => hostname),
    ['n1', 'n2', 'n10'],
  )
  t.is((JSON.parse((await rsm('show', 'n1', '--json')).stdout) as Host).hostname, 'n1')
  const removed = await rsm('remove', 'n[1-2,10]', '--yes')
  t.is(removed.stdout, 'removed 2 hosts: n[1,10]\n')
  t.is(removed.stderr, 'rsm: n2: refused\n')
  t.is(removed.exit, 6)
})

test('hosts revoke closes the link; the host joins again with --replace', async (t) => {
  const server = await startTestServer(t)
  const agent = await ScriptedAgent.link(server, await server.enroll('web1'))
  const rsm = commandLine(t, server)
  t.is((await rsm(['hosts', 'revoke', 'web1'])).exit, 2)
  t.is((await rsm(['hosts', 'revoke', 'web1', '--yes'])).stdout, 'revoked the agent of web1\n')
  t.is((await agent.closed).code, 4401)
  const again = await rsm(['hosts', 'revoke', 'web1', '--yes'])
  t.is(again.exit, 5)
  t.is(again.stderr, 'rsm: web1 has no agent to revoke\n     to enroll one: rsm hosts join --replace web1\n')
  const joined = await rsm(['hosts', 'join', '--replace', 'web1', '--yes'])
  t.is(joined.exit, 0, joined.stderr)
  t.regex(joined.stdout, /^ RSM_AGENT_ENROLL_TOKEN=\S+ rsm agent run --url /)
})

test('hosts join --token and --join-string print nothing else on stdout', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const token = await rsm(['hosts', 'join', '--max-uses', '3', '--token'])
  t.regex(token.stdout, /^rsm_enr_\S+\n$/)
  t.is(token.stderr, '')
  const { stdout } = await rsm(['hosts', 'join', '--join-string'])
  t.regex(stdout, /^rsm-join:\S+\n$/)
  t.regex(readJoin(stdout).token, /^rsm_enr_/)
  t.is((await rsm(['hosts', 'join', '--token', '--join-string'])).exit, 2)
  t.is((await rsm(['hosts', 'join', '--token', '--ssh', 'web1'])).exit, 2)

  const older = await startFakeServer(t, {
    'POST /api/enrollment-tokens': () => ({
      id: 9,
      token: 'rsm_enr_x',
      expiresAt: '2026-11-22T03:25:15.000Z',
    }),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: older.url, RSM_TOKEN: 'x' })
  const refused = await runRsm(['hosts', 'join', '--join-string'], env)
  t.is(refused.stderr, 'rsm: the server is too old to make a join string\n     rsm hosts join --token\n')
  t.is(refused.stdout, '')
})

test('hosts join --replace revokes no agent without a new token, and removes the token if the agent stays', async (t) => {
  const server = await startTestServer(t)
  const agent = await ScriptedAgent.link(server, await server.enroll('web1'))
  const rsm = commandLine(t, server)
  const late = await rsm(['hosts', 'join', '--replace', 'web1', '--yes', '--expires', '400d'])
  t.is(late.exit, 2, late.stderr)
  t.is((await rsm(['hosts', 'revoke', 'web1', '--yes'])).stdout, 'revoked the agent of web1\n')
  await agent.closed

  const made = { id: 9, token: 'rsm_enr_x', expiresAt: '2026-11-22T03:25:15.000Z' }
  const refusing = await startFakeServer(t, {
    'GET /api/hosts': () => pageOf([{ ...hostNamed(1, 'web1'), agent: {} }]),
    'POST /api/enrollment-tokens': () => made,
    'DELETE /api/enrollment-tokens/9': () => ({ id: 9 }),
    'DELETE /api/hosts/1/agent': (_, response) => envelope(response, 409, {}),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: refusing.url, RSM_TOKEN: 'x' })
  const refused = await runRsm(['hosts', 'join', '--replace', 'web1', '--yes'], env)
  t.is(refused.exit, 6, refused.stderr)
  t.is(refused.stdout, '')
  t.deepEqual(
    refusing.seen.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`),
    ['POST /api/enrollment-tokens', 'DELETE /api/hosts/1/agent', 'DELETE /api/enrollment-tokens/9'],
  )
})
