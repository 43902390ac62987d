import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import test from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { LiveTerminal, ranOnTerminal } from '../../helpers/terminals/terminal-session.ts'

const isRoot = process.getuid?.() === 0
const hasBwrap = spawnSync('bwrap', ['--version']).status === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const boxed = isRoot && hasBwrap ? test : test.skip // Requires bubblewrap.

const other = { allowRunAs: ['nobody'] }
const modes: [string, Partial<AgentOptions>, string | undefined, typeof test | typeof test.skip][] = [
  ['as another user', other, 'nobody', asRoot],
  ['in a strict sandbox', { sandbox: 'strict' }, undefined, boxed],
  ['in a strict sandbox, as another user', { ...other, sandbox: 'strict' }, 'nobody', boxed],
]

for (const [name, options, runAs, run] of modes)
  run(`a session ${name}: a controlling terminal, its size, commands, and its end`, async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, options)
    const user = runAs === undefined ? {} : { runAs }
    const command = `id -un; id -Gn; stty size; stty -F /dev/tty -a >/dev/null && echo owns-it; cat ${dataDir}/identity.json; exit 6`
    const { text, end } = await ranOnTerminal(server, agent.agentId, { command, ...user })
    t.is(end.exitCode, 6, text)
    const group = runAs === undefined ? '[^\\r]*' : 'nogroup'
    t.regex(text, new RegExp(`^${runAs ?? 'root'}\r\n${group}\r\n24 80\r\nowns-it\r\n`))
    t.regex(text, /identity.json: (Permission denied|No such file)/)
    const shell = await new LiveTerminal(server, agent.agentId).open({ shell: 'bash', ...user })
    shell.type('stty -echo; PS1="[\\$?] "; echo "home=$HOME user=$USER job-$((1 + 1))"\n')
    t.regex(await shell.shows(/job-2/), new RegExp(`user=${runAs ?? 'root'} `))
    // Not dash: it may lose a signal that arrives as it starts a program.
    shell.type('bash -c "echo here-$((1 + 1)); sleep 900; echo never-$((1 + 1))"\n')
    await shell.shows(/here-2/)
    shell.type('\x03')
    // Wait for the prompt: bash may drop earlier input with the interrupted line.
    await shell.shows(/\[130\] /)
    shell.type('echo "after-$((1 + 1)) $?"\n')
    await shell.shows(/after-2 130/)
    shell.resize(100, 50)
    shell.type('stty size\n')
    await shell.shows(/50 100/)
    shell.type('exit 3\n')
    t.like(await shell.ended(), { exitCode: 3, reason: null })
  })

asRoot(
  'programs open another user’s terminal by its name, and a login shell of nologin is an error',
  async (t) => {
    const { server, agent } = await linkedAgent(t, other)
    const command = 'echo by-name > "$(tty)"; echo by-stdout >> /dev/stdout; stat -c "%U %a" "$(tty)"'
    const { text } = await ranOnTerminal(server, agent.agentId, { command, runAs: 'nobody' })
    t.is(text, 'by-name\r\nby-stdout\r\nnobody 600\r\n')
    const withoutShell = server.terminalOpen(agent.agentId, { sessionId: 'none', runAs: 'nobody' }, ['shell'])
    server.send('TERMINAL_OPEN', withoutShell)
    const { reason } = await new LiveTerminal(server, agent.agentId, 'none').ended()
    t.regex(reason ?? '', /^the login shell of nobody is \/usr\/sbin\/nologin: choose another/)
  },
)

test('S09 scripts and other sessions do not inherit an open terminal', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const first = await new LiveTerminal(server, agent.agentId).open()
  server.execute(agent.agentId, { taskId: 'looks', script: 'ls -l /proc/self/fd' })
  await server.completed('looks')
  t.notRegex(server.text('looks'), /ptmx|pts/)
  const { text } = await ranOnTerminal(server, agent.agentId, { command: 'ls -l /proc/self/fd' })
  t.notRegex(text, /ptmx|socket:/)
  t.is(new Set(text.match(/\/dev\/pts\/\d+/g)).size, 1, text)
  t.notRegex(readdirSync('/proc/self/fd').join(), /ptmx/)
  first.close()
  await first.ended()
})
