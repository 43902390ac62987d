import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { fetchDocument } from '../helpers/api/api-document.ts'
import { commandLine, runLines } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'

/** Command and shape of each row of docs/json.md. */
const rows = new Map(
  [...readFileSync('docs/json.md', 'utf8').matchAll(/^\| `rsm ([^`]+)` \| (.+) \|$/gm)].map(
    ([, command = '', shape = '']) => [command, shape] as const,
  ),
)

test('docs/json.md names every command', (t) => {
  const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, unknown>
  }
  const silent = new Set([
    'server start',
    'agent run',
    'quickstart',
    'terminal',
    'tui',
    'completion',
    'recordings play',
  ])
  const commands = Object.keys(manifest.commands).map((id) => id.replaceAll(':', ' '))
  for (const command of commands) t.true(rows.has(command) || silent.has(command), command)
  for (const row of rows.keys())
    t.true(
      commands.some((command) => row.startsWith(command)),
      row,
    )
})

test('--json prints what docs/json.md says, by the schemas of the API', async (t) => {
  const server = await startTestServer(t)
  await realAgent(t, server, { hostname: 'web1' })
  await server.enrol('web2')
  const task = async (content: string, wait: boolean) => {
    const target = { selector: 'web1' }
    return (await server.data('POST', '/api/tasks', { script: { content }, target, async: !wait }))
      .taskId as string
  }
  const failed = await task('exit 3', true)
  const endless = await task('sleep 600', false)
  const home = temporaryDirectory(t)
  const file = (name: string, text: string) => {
    writeFileSync(join(home, name), text)
    return join(home, name)
  }
  const token = file('token', server.token)
  const script = file('hello.sh', 'echo hello\n')
  const rsm = commandLine(t, server)
  const added = await rsm(['users', 'add', 'ann', '--role', 'viewer', '--password-stdin', '--json'], {
    input: 'a long password',
  })
  t.is(added.exit, 0, added.stderr)
  const words = [
    `login ${server.url} --context test --token-file ${token}`,
    'context list',
    'context use test',
    'context remove test --yes',
    'whoami',
    'hosts add db1 --ip 192.0.2.9',
    'hosts list',
    'hosts show web1',
    'hosts edit db1 -t a=b',
    'hosts wait web1',
    'hosts metrics web1',
    'hosts doctor',
    'hosts join',
    'hosts revoke web2 --yes',
    'hosts remove db1 --yes',
    'enrollments list',
    'enrollments remove 3 --yes',
    `scripts add hello ${script}`,
    'scripts list',
    'scripts show hello',
    'scripts edit hello -d greets',
    'scripts versions hello',
    'scripts remove hello --yes',
    'clusters add all -w web1',
    'clusters list',
    'clusters show all',
    'clusters edit all -d x',
    'clusters remove all --yes',
    'exec -w web1 true',
    'exec --detach -w web1 true',
    'exec --plan -w web1 true',
    'tasks list',
    `tasks show ${failed}`,
    `tasks wait ${failed}`,
    `tasks retry ${failed}`,
    `tasks cancel ${endless}`,
    `logs ${failed}`,
    'recordings list',
    'tokens add ci',
    'tokens list',
    'tokens remove ci --yes',
    'users list',
    'users show ann',
    'users edit ann --email a@example.org',
    'users remove ann --yes',
    'audit list --limit 5',
    'audit verify',
    'logout',
  ]
  const lines = words.map((line) => {
    const [command = '', ...rest] = line.split(' ')
    return { argv: command === 'exec' ? [command, '--json', ...rest] : [command, ...rest, '--json'] }
  })
  const ran = await runLines(t, server, lines)
  const { faultOfSchema } = await fetchDocument(server)
  const faultOf = (shape: string, value: unknown): string | null => {
    const [name = ''] = /^`\w+`/.exec(shape) ?? []
    if (name !== '') return faultOfSchema(name.slice(1, -1), value)
    const fields = shape
      .replace(/^`\{|\}`.*$/g, '')
      .split(', ')
      .map((field) => field.split(': '))
    const found = value as Record<string, unknown>
    t.deepEqual(Object.keys(found).sort(), fields.map(([key = '']) => key).sort())
    for (const [key = '', inner] of fields) {
      if (inner === undefined) continue
      const each = inner.startsWith('[') ? (found[key] as unknown[]) : [found[key]]
      for (const one of each) {
        const fault = faultOfSchema(inner.replace(/[[\]]/g, ''), one)
        if (fault !== null) return fault
      }
    }
    return null
  }
  t.is(faultOf(rows.get('users add') ?? '', JSON.parse(added.stdout)), null)
  const unrun = new Set(rows.keys())
  for (const [at, line] of words.entries()) {
    const got = ran[at]
    const row =
      [...rows.keys()].filter((each) => line.startsWith(each)).sort((a, b) => b.length - a.length)[0] ?? ''
    unrun.delete(row)
    let value: unknown
    t.notThrows(() => (value = JSON.parse(got?.stdout ?? '')), `${line}: ${got?.stderr}`)
    t.is(faultOf(rows.get(row) ?? '', value), null, line)
  }
  const elsewhere = ['users add', 'scripts run', 'recordings export', 'agent status', 'events', 'api']
  t.deepEqual([...unrun].sort(), elsewhere.sort())
})
