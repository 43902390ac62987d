import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { copyFleet } from '../helpers/agents/copy-fleet.ts'
import { ScriptedAgent } from '../helpers/agents/scripted-agent.ts'

test('cp writes a file on hosts with its mode, reports it, and changes nothing the second time', async (t) => {
  const { rsm, theirs, file, there } = await copyFleet(t, 'web1', 'web2')
  const source = file('app.conf', 'port=1\n', 0o640)
  const argv = ['cp', source, `web[1-2]:${theirs}/%h-`]
  const first = await rsm([...argv.slice(0, 2), `web[1-2]:${theirs}/%h-100%%`])
  t.is(first.exit, 0, first.stderr)
  t.is(there('web1-100%'), 'port=1\n')
  t.is(there('web2-100%'), 'port=1\n')
  t.is(statSync(join(theirs, 'web1-100%')).mode & 0o7777, 0o640)
  t.regex(first.stdout, /web1-100% written/)
  t.regex(first.stderr, /^rsm: 2 hosts: 2 SUCCESS .*$/m)
  t.regex(first.stderr, /^rsm: 2 hosts changed$/m)

  const again = await rsm([...argv.slice(0, 2), `web[1-2]:${theirs}/%h-100%%`, '--json'])
  t.is(again.exit, 0, again.stderr)
  const task = JSON.parse(again.stdout)
  t.like(task, { type: 'COPY', status: 'SUCCESS' })
  t.deepEqual(
    task.results.map(({ changed }: { changed: boolean }) => changed),
    [false, false],
  )
})

test('cp takes hosts from options, copies into directories, and keeps a backup of replaced files', async (t) => {
  const { rsm, theirs, file, there } = await copyFleet(t, 'web1')
  const source = file('app 100%.conf', 'new\n')
  const target = `:${theirs}/`
  writeFileSync(join(theirs, 'app 100%.conf'), 'old\n')
  const ran = await rsm(['cp', source, target, '-w', 'web1', '--backup', '--mode', '0600', '--json'])
  t.is(ran.exit, 0, ran.stderr)
  t.is(there('app 100%.conf'), 'new\n')
  t.is(statSync(join(theirs, 'app 100%.conf')).mode & 0o7777, 0o600)
  t.is(there(`app 100%.conf.rsm-${JSON.parse(ran.stdout).taskId}`), 'old\n')
})

test('cp --dry-run lists hosts that would change, --diff shows how, --plan asks no host; none of them writes', async (t) => {
  const { server, rsm, theirs, file, there } = await copyFleet(t, 'web1')
  const source = file('app.conf', 'port=2\n')
  writeFileSync(join(theirs, 'app.conf'), 'port=1\n')
  const argv = ['cp', source, `web1:${theirs}/`]
  const dry = await rsm([...argv, '--dry-run'])
  t.is(dry.exit, 0, dry.stderr)
  t.regex(dry.stderr, /^rsm: 1 host would change$/m)
  const diff = await rsm([...argv, '--diff'])
  t.is(diff.exit, 0, diff.stderr)
  t.regex(diff.stdout, /^-port=1\n\+port=2$/m)
  const before = (await server.data('GET', '/api/tasks')).totalElements
  const plan = await rsm([...argv, '--plan', '--json'])
  t.like(JSON.parse(plan.stdout), { type: 'COPY', timeout: 3600, hosts: [{ hostname: 'web1' }] })
  t.is((await server.data('GET', '/api/tasks')).totalElements, before)
  t.is(there('app.conf'), 'port=1\n')
})

test('cp - copies stdin of any length, also with --owner, --run-as, --limit-rate and --secret', async (t) => {
  const { rsm, theirs, there } = await copyFleet(t, 'web1')
  const input = 'a line of some length\n'.repeat(200_000)
  const me = userInfo().username
  const options = ['--owner', me, '--run-as', me, '--limit-rate', '1G', '--secret', '--json']
  const ran = await rsm(['cp', '-', `web1:${theirs}/dump`, ...options], { input })
  t.is(ran.exit, 0, ran.stderr)
  t.like(JSON.parse(ran.stdout), { runAs: me, copy: { owner: me, kind: 'FILE' } })
  t.true(there('dump') === input)
  t.is(statSync(join(theirs, 'dump')).mode & 0o7777, 0o600)
  const empty = await rsm(['cp', '-', `web1:${theirs}/none`], { input: '' })
  t.is(empty.exit, 0, empty.stderr)
  t.is(there('none'), '')
})

test("cp exits with the code of its hosts, and prints their system's error", async (t) => {
  const { rsm, theirs, file } = await copyFleet(t, 'web1')
  const source = file('app.conf', 'x\n')
  const ran = await rsm(['cp', source, `web1:${theirs}/nowhere/app.conf`])
  t.true(ran.exit === 1 || ran.exit === 126, ran.stderr)
  t.regex(ran.stderr, /web1: FAILED, exit \d+: .*nowhere/)
  // The reason is in the summary, so it is not printed as output too.
  t.is(ran.stderr.split('nowhere').length, 2, ran.stderr)
  const logs = await rsm(['logs', 'latest'])
  t.regex(logs.stderr, /nowhere/)
})

test("cp shows a host's output if its result has no reason, such as a copy that did not start", async (t) => {
  const { server, rsm, file } = await copyFleet(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: { files: true } })
  agent.serveCopies(server, identity, ({ taskId }) => {
    agent.output(taskId, 0, '/opt/node: not found\n', 'stderr')
    return { exitCode: 127, lastSequence: 0 }
  })
  const ran = await rsm(['cp', file('app.conf', 'new\n'), 'web1:/etc/'])
  t.is(ran.exit, 127, ran.stderr)
  t.regex(ran.stderr, /^web1: \/opt\/node: not found\nrsm: web1: FAILED, exit 127$/m)
})

test('cp to unknown hosts uploads nothing', async (t) => {
  const { server, rsm, theirs, file } = await copyFleet(t, 'web1')
  const source = file('app.conf', 'x\n')
  t.is((await rsm(['cp', source, `nosuch:${theirs}/`])).exit, 5)
  const { content } = await server.data('GET', '/api/audit?action=file.upload')
  t.deepEqual(content, [])
})

test('exec --stdin passes a file or the local stdin to scripts', async (t) => {
  const { rsm, file } = await copyFleet(t, 'web1', 'web2')
  const source = file('app.sql', 'select 1\n')
  const one = await rsm(['exec', '-w', 'web1', '--stdin', source, 'tr a-z A-Z'])
  t.is(one.stdout, 'web1: SELECT 1\n', one.stderr)
  const both = await rsm(['exec', '-w', 'web[1-2]', '-b', '--stdin', '-', 'wc -c'], { input: 'four' })
  t.is(both.exit, 0, both.stderr)
  t.regex(both.stdout, /web\[1-2\].*\n4\n/s)
})

test('files of /proc and /sys are copied to their end, whatever size they report', async (t) => {
  const { rsm, theirs, ours, there } = await copyFleet(t, 'web1')
  const version = readFileSync('/proc/version', 'utf8')
  const succeeds = async (...argv: string[]) => {
    const ran = await rsm(argv)
    t.is(ran.exit, 0, ran.stderr)
    t.notRegex(ran.stderr, /changed while/)
    return ran
  }
  await succeeds('cp', '/proc/version', `web1:${theirs}/version`)
  t.is(there('version'), version)
  const counted = await succeeds('exec', '-w', 'web1', '--stdin', '/proc/version', 'cat')
  t.is(counted.stdout, `web1: ${version}`)
  await succeeds('cp', 'web1:/proc/version', join(ours, 'version'))
  t.is(readFileSync(join(ours, 'version'), 'utf8'), version)
  const memory = await rsm(['cp', '/proc/self/mem', `web1:${theirs}/version`])
  t.is(memory.exit, 2)
  t.regex(memory.stderr, /read \/proc\/self\/mem: i\/o error \(EIO\)/)
  t.is(there('version'), version)
  const statistics = '/sys/class/net/lo/statistics'
  if (!existsSync(statistics)) return
  await succeeds('cp', '-r', statistics, `web1:${theirs}/statistics`)
  t.is(there('statistics/collisions'), '0\n')
  await succeeds('cp', '-r', `web1:${statistics}`, join(ours, 'fetched'))
  t.is(readFileSync(join(ours, 'fetched/web1/statistics/collisions'), 'utf8'), '0\n')
})

test('a failed cp from hosts leaves no empty directory', async (t) => {
  const { rsm, theirs, ours } = await copyFleet(t, 'web1')
  t.is((await rsm(['cp', '-r', `web1:${theirs}/none`, join(ours, 'out/deep')])).exit, 1)
  t.deepEqual(readdirSync(ours), [])
})

test('cp from hosts to - is refused, and does not write a file called -', async (t) => {
  const { rsm } = await copyFleet(t, 'web1')
  const ran = await rsm(['cp', 'web1:/etc/hostname', '-'])
  t.is(ran.exit, 2, ran.stderr)
  t.regex(ran.stderr, /goes to a file or a directory, not to stdout/)
  t.regex(ran.stderr, /\.\/- for a file called -/)
})
