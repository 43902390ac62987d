import test from 'ava'
import { exitOfJoins, type JoinOutcome, showJoins } from '../../../src/cli/ssh/outcome.ts'

const outcome = (host: string, more: Partial<JoinOutcome> = {}): JoinOutcome => ({
  host,
  status: 'FAILED',
  exitCode: 6,
  error: 'sudo asks for a password',
  hint: '--ask-sudo-password asks you for it',
  copied: false,
  hostId: null,
  hostname: null,
  agentId: null,
  ...more,
})
const joined = (host: string, hostId: number, hostname = host) =>
  outcome(host, { status: 'JOINED', exitCode: 0, error: null, hint: null, hostId, hostname, agentId: 'a' })
const unknown = (host: string, port: string) =>
  outcome(host, {
    status: 'UNREACHABLE',
    exitCode: 255,
    error: 'its host key is not known',
    hint: `ssh-keyscan ${port}${host} >> ~/.ssh/known_hosts\nand compare`,
  })

test('hosts with the same outcome are one node set, and advice is printed once', (t) => {
  const outcomes = [
    ...['web1', 'web2', 'web10'].map((host, at) => joined(host, at + 1, host.toUpperCase())),
    joined('bastion', 9, 'ip-10-0-0-9'),
    ...['db1', 'db2'].map((host) => outcome(host)),
    ...['n1', 'n2'].map((host) => unknown(host, '')),
    unknown('n3', '-p 2222 '),
    outcome('late', { status: 'CANCELLED', exitCode: 130, error: null, hint: null }),
  ]
  const { joined: good, failed, sum } = showJoins(outcomes, 48_210)
  t.deepEqual(good, ['web[1-2,10]: joined', 'bastion: joined as ip-10-0-0-9 (@id:9)'])
  t.deepEqual(failed, [
    'n[1-3]: UNREACHABLE: its host key is not known',
    '     ssh-keyscan n1 n2 >> ~/.ssh/known_hosts',
    '     ssh-keyscan -p 2222 n3 >> ~/.ssh/known_hosts',
    '     and compare',
    'db[1-2]: FAILED: sudo asks for a password',
    '     --ask-sudo-password asks you for it',
    'late: CANCELLED',
  ])
  t.is(sum, '10 hosts: 4 JOINED, 2 FAILED, 3 UNREACHABLE, 1 CANCELLED in 48.2 s')
})

test('a single host determines the exit code; several exit with 1 unless all have joined', (t) => {
  t.is(exitOfJoins([joined('web1', 1)]), 0)
  t.is(exitOfJoins([outcome('web1')]), 6)
  t.is(exitOfJoins([unknown('web1', '')]), 255)
  t.is(exitOfJoins([joined('web1', 1), joined('web2', 2)]), 0)
  t.is(exitOfJoins([joined('web1', 1), unknown('web2', '')]), 1)
})
