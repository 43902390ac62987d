import test from 'ava'
import { hostTrouble, sshTrouble } from '../../../src/ui/ssh/trouble.ts'

const of = (stderr: string, exit: number | null = 1, stdout = '') =>
  hostTrouble({ exit, stdout, stderr }, 'copying')
const error = (fields: object) => `${JSON.stringify({ error: fields })}\n`

/** What a host says, and what is made of it. */
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
    'no root',
    'use sudo',
  ],
  [
    'an error that is no text',
    '{"error":{"message":{}}}',
    1,
    'it ended while copying: {"error":{"message":{}}}',
    null,
  ],
  ['a hint that is none', error({ exit: 'x', message: 'm', hint: 7 }), 1, 'm', null],
  ['an exit code of a byte too much', error({ exit: 70_000, message: 'm', hint: null }), 255, 'm', null],
  [
    'control sequences',
    error({ exit: 6, message: 'a\u001b[31mb\nc', hint: 'd\u001b]0;x\u0007e' }),
    6,
    'ab c',
    'de',
  ],
  ['half an error', '{"error":{"exi\n', 1, 'it ended while copying: {"error":{"exi', null],
  ['no object', '{"error":null}\n', 1, 'it ended while copying: {"error":null}', null],
  ['the script', 'mkdir: no\nrsm: can not\n', 1, 'can not', null],
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
    'sudo wants a terminal',
    'its sudoers has requiretty; lift that for this user: Defaults:USER !requiretty',
  ],
  [
    'a sudo that knows the user not',
    'deploy is not in the sudoers file.\n',
    1,
    'deploy is not in the sudoers file.',
    null,
  ],
  ['nothing', '', 1, 'it ended while copying: exit 1, and nothing was said', null],
]

for (const [what, stderr, exit, said, hint] of cases)
  test(`what a host says becomes its result: ${what}`, (t) => {
    t.deepEqual(of(stderr), { isUnreachable: false, exit, error: said, hint })
  })

test('a connection that is lost says so in the words of ssh', (t) => {
  const lost = of('Connection to web1 closed by remote host.\n', 255)
  t.like(lost, { exit: 255, error: 'it ended while copying: Connection to web1 closed by remote host.' })
  t.like(of('', null), { exit: 1 })
})

test('that a host closed the connection is said where ssh says nothing else', (t) => {
  const closed = 'Connection closed by 127.0.0.1 port 22'
  t.like(sshTrouble(`${closed}\n`, [], 'web1'), { exit: 255, error: closed })
  t.like(sshTrouble(`No more authentication methods\n${closed}\n`, [], 'web1'), {
    error: 'No more authentication methods',
  })
  t.like(sshTrouble('', [], 'web1'), { error: 'ssh ended and said nothing' })
})

test('a jump whose key is not known is told from a host whose key is not', (t) => {
  const stderr =
    'Host key verification failed.\nkex_exchange_identification: Connection closed by remote host\n'
  t.like(sshTrouble(stderr, [], 'web1'), { exit: 255, error: 'the host key of the jump is not known' })
})
