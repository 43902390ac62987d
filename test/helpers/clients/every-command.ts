import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../agents/real-agent.ts'
import { adminLogin, startTestServer, type TestServer } from '../servers/server.ts'
import { commandLine } from './command-line.ts'

/** Commands without a schema, or with input of their own. */
export const notOnTour: readonly string[] = [
  'passwd',
  'totp enable',
  'totp disable',
  'scripts run',
  'recordings export',
  'audit export',
  'agent status',
  'agent selftest',
  'hosts upgrade',
  'server backup',
  'server restore',
  'server compact',
  'server migrate',
  'server status',
  'server doctor',
  'server retention',
  'server reset-password',
  'server log-level',
  'server upgrade',
  'server confirm-clock',
  'server confirm-restore',
  'agent install',
  'agent uninstall',
  'server install',
  'server uninstall',
  'server releases add',
  'server releases list',
  'server releases remove',
  'events',
  'api',
]

/**
 * Starts a server with a host web1. Returns a command line of (nearly) every command in an order in which each one succeeds,
 * except those of failed tasks, and the value that `users add` printed under `option`.
 */
export async function everyCommand(
  t: ExecutionContext,
  option: string,
): Promise<{
  server: TestServer
  lines: readonly string[]
  added: Awaited<ReturnType<ReturnType<typeof commandLine>>>
}> {
  const server = await startTestServer(t)
  await realAgent(t, server, { hostname: 'web1' })
  await server.enroll('web2')
  const task = async (content: string, wait: boolean) => {
    const target = { selector: 'web1' }
    return (await server.data('POST', '/api/tasks', { script: { content }, target, async: !wait }))
      .taskId as string
  }
  const failed = await task('echo no; exit 3', true)
  const endless = await task('sleep 600', false)
  const { fileId } = await server.data('POST', '/api/files?size=5')
  const home = temporaryDirectory(t)
  const file = (name: string, text: string) => {
    writeFileSync(join(home, name), text, { mode: 0o600 })
    return join(home, name)
  }
  const token = file('token', server.token)
  const script = file('hello.sh', 'echo hello\n')
  const rsm = commandLine(t, server)
  const added = await rsm(['users', 'add', 'ann', '--role', 'viewer', '--password-stdin', option], {
    input: 'a long password',
  })
  t.is(added.exit, 0, added.stderr)
  await server.data('POST', '/api/auth/login', adminLogin)
  const logins = (await server.data('GET', '/api/auth/sessions')).content as {
    id: number
    current: boolean
  }[]
  const elsewhere = logins.find(({ current }) => !current)?.id
  const lines = [
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
    'hosts install db1',
    'hosts revoke web2 --yes',
    'hosts remove db1 --yes',
    'enrollments list',
    'enrollments remove 3 --yes',
    'webhooks add call https://alerts.example.org/rsm --event task.failed',
    'webhooks list',
    'webhooks edit call --disable',
    'webhooks test call',
    'webhooks deliveries call',
    'webhooks remove call --yes',
    `scripts add hello ${script}`,
    'scripts list',
    'scripts show hello',
    'scripts edit hello -d greets',
    'scripts versions hello',
    'scripts remove hello --yes',
    `schedules add nightly --every 30d -w web1 --script ${script}`,
    'schedules list',
    'schedules show nightly',
    'schedules edit nightly --timeout 9',
    'schedules pause nightly',
    'schedules resume nightly',
    'schedules confirm nightly',
    'schedules next nightly',
    'schedules run nightly',
    'schedules remove nightly --yes',
    'clusters add all -w web1',
    'clusters list',
    'clusters show all',
    'clusters edit all -d x',
    'clusters remove all --yes',
    'exec -w web1 true',
    'exec --detach -w web1 true',
    'exec --plan -w web1 true',
    `cp ${script} web1:${home}/copied.sh`,
    `cp --detach ${script} web1:${home}/detached.sh`,
    `cp --plan ${script} web1:${home}/planned.sh`,
    `cp web1:${script} ${home}/fetched.sh`,
    'tasks files latest',
    'files list',
    `files remove ${fileId} --yes`,
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
    'sessions list',
    `sessions end ${elsewhere}`,
    'sessions end --others',
    'users list',
    'users show ann',
    'users edit ann --email a@example.org',
    'users remove ann --yes',
    'audit list --limit 5',
    'audit verify',
    'logout',
  ]
  return { server, lines, added }
}

/** The words of a command line, with an option if the command accepts it. */
export function withOption(line: string, option: string): readonly string[] {
  const [command = '', ...rest] = line.split(' ')
  return command === 'exec' ? [command, option, ...rest] : [command, ...rest, option]
}
