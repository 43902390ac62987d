import test from 'ava'
import type { Token, TokenCreated } from '../../src/core/protocol/http/users.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

test('tokens add prints only the token, which works until it is removed', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const short = await rsm(['tokens', 'add', 'nightly', '--expires', '12h', '--json'])
  const { createdAt, expiresAt } = JSON.parse(short.stdout) as TokenCreated
  t.is(Date.parse(expiresAt) - Date.parse(createdAt), 12 * 3600_000)
  t.is((await rsm(['tokens', 'remove', 'nightly', '--yes'])).exit, 0)
  const added = await rsm(['tokens', 'add', 'ci', '--role', 'operator'])
  t.is(added.exit, 0, added.stderr)
  t.regex(added.stdout, /^rsm_pat_\S+\n$/)
  t.is(added.stderr, '')
  const pipeline = commandLine(t, server, added.stdout.trim())
  t.is((await pipeline(['hosts', 'list'])).exit, 0)
  t.is((await pipeline(['users', 'list'])).exit, 3)
  t.regex((await pipeline(['whoami'])).stdout, /^admin \(ADMIN\), by token ci as OPERATOR at http/)

  const listed = await rsm(['tokens', 'list'])
  t.regex(listed.stdout, /^ID +NAME +ROLE .*\n\d+ +ci +OPERATOR /)
  t.false(listed.stdout.includes(added.stdout.trim()))
  t.is((await rsm(['tokens', 'remove', 'ci'])).exit, 2)
  t.regex((await rsm(['tokens', 'remove', 'CI', '-y'])).stdout, /^removed ci \(id \d+\)\n$/)
  t.is((await pipeline(['whoami'])).exit, 3)
  t.is((await rsm(['tokens', 'list'])).stderr, 'rsm: no tokens: rsm tokens add NAME\n')
})

test('tokens remove asks for the id if several tokens have the name, and exits with 5 if none has', async (t) => {
  const server = await startTestServer(t)
  const made: Token[] = []
  for (let count = 0; count < 2; count++) made.push(await server.data('POST', '/api/tokens', { name: 'ci' }))
  const ids = made.map(({ id }) => id)
  const rsm = commandLine(t, server)
  const refused = await rsm(['tokens', 'remove', 'ci', '--yes'])
  t.is(refused.exit, 2)
  t.regex(refused.stderr, new RegExp(`2 tokens are named ci\n.*${ids.join(', ')}`))
  t.is((await rsm(['tokens', 'remove', String(ids[0]), '--yes'])).exit, 0)
  t.is((await rsm(['tokens', 'remove', 'ci', '--yes'])).exit, 0)
  t.is((await rsm(['tokens', 'remove', 'ci', '--yes'])).exit, 5)
})

test('enrollments list shows the tokens of hosts join, and enrollments remove revokes them', async (t) => {
  const server = await startTestServer(t)
  const rsm = commandLine(t, server)
  const joined = await rsm(['hosts', 'join', '--max-uses', '3', '-t', 'role=web', '--json'])
  const { id, token } = JSON.parse(joined.stdout) as { id: number; token: string }
  const listed = await rsm(['enrollments', 'list'])
  t.regex(listed.stdout, new RegExp(`\n${id} +- +0 of 3 +- +- +role=web +admin `))
  t.false(listed.stdout.includes(token))
  t.is((await rsm(['enrollments', 'remove', String(id)])).exit, 2)
  t.is((await rsm(['enrollments', 'remove', String(id), '--yes'])).exit, 0)
  const gone = await rsm(['enrollments', 'remove', String(id), '--yes'])
  t.is(gone.exit, 5)
  t.regex(gone.stderr, /no such enrollment token/)
})
