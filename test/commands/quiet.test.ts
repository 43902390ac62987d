import test from 'ava'
import { commandLine, runLines } from '../helpers/clients/command-line.ts'
import { everyCommand, withOption } from '../helpers/clients/every-command.ts'
import { startTestServer } from '../helpers/servers/server.ts'

/** Commands that print requested data; the output of all others is a confirmation. */
const prints =
  /^(\w+ (list|show|versions|files|doctor|next)|schedules run|hosts join|tokens add|webhooks (add|test)|whoami|logs|tasks retry|(exec|cp) --(detach|plan)) ?/

test('A16 with -q every command prints requested data and errors, and no confirmations', async (t) => {
  const { server, lines, added } = await everyCommand(t, '-q')
  t.is(added.stdout + added.stderr, '')
  const ran = await runLines(
    t,
    server,
    lines.map((line) => ({ argv: withOption(line, '-q') })),
  )
  for (const [at, line] of lines.entries()) {
    const { exit, stdout, stderr } = ran[at] ?? { exit: -1, stdout: '', stderr: '' }
    // This server has no metrics and no recordings.
    if (/^(hosts metrics|recordings list)/.test(line)) t.is(stderr, '', line)
    else if (prints.test(line)) t.not(stdout, '', line)
    else t.is(stdout, '', line)
    if (exit === 0) t.is(stderr, '', line)
  }
})

test('A16 a change of several hosts is confirmed in one line', async (t) => {
  const server = await startTestServer(t)
  for (const name of ['web1', 'web2', 'web3', 'db1']) await server.enroll(name)
  const rsm = commandLine(t, server)
  t.is((await rsm(['hosts', 'edit', 'web*', '-t', 'role=web'])).stdout, 'changed 3 hosts: web[1-3]\n')
  t.is((await rsm(['hosts', 'edit', 'db1', '-t', 'role=db'])).stdout, 'changed db1 (id 4, role=db)\n')
  t.is((await rsm(['hosts', 'remove', 'web[1-2]', '--yes'])).stdout, 'removed 2 hosts: web[1-2]\n')
  t.is((await rsm(['hosts', 'remove', 'db1', '--yes'])).stdout, 'removed db1\n')
})
