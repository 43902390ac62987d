import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { readStat } from '../../../src/agent/processes/machine.ts'
import { sweepTerminals } from '../../../src/agent/terminals/leftovers.ts'
import { Terminals } from '../../../src/agent/terminals/terminals.ts'
import type { TerminalOpen } from '../../../src/core/protocol/messages.ts'
import { linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { LiveTerminal, ranOnTerminal } from '../../helpers/terminals/terminal-session.ts'

test('a TERM without a terminfo entry is replaced by xterm-256color with a note; an entry of the user counts', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const command = 'echo "<$TERM ${COLORTERM-none}>"; [ -t 1 ] && tput cols'
  const run = async (term?: string) =>
    (await ranOnTerminal(server, agent.agentId, { command, ...(term === undefined ? {} : { term }) })).text
  t.is(
    await run('xterm-ghostty'),
    'rsm: this host has no terminfo entry for TERM=xterm-ghostty; using xterm-256color\r\n<xterm-256color none>\r\n80\r\n',
  )
  t.is(await run('xterm'), '<xterm none>\r\n80\r\n')
  t.is(await run(), '<xterm-256color none>\r\n80\r\n')
  t.regex(await run('dumb'), /^<dumb none>/)
  t.regex(await run('../../x'), /^<xterm-256color none>/)
  const entry = `rsm-test-${process.pid}`
  const directory = join(homedir(), '.terminfo', '72')
  const made = mkdirSync(directory, { recursive: true })
  t.teardown(() => rmSync(made ?? join(directory, entry), { recursive: true }))
  writeFileSync(join(directory, entry), '')
  t.regex(await run(entry), new RegExp(`^<${entry} none>`))
})

test('an interactive shell has its terminal, size and environment, and reports its exit code', async (t) => {
  process.env['RSM_AGENT_ENROLL_TOKEN'] = 'rsm_enr_secret'
  t.teardown(() => delete process.env['RSM_AGENT_ENROLL_TOKEN'])
  const { server, agent, dataDir } = await linkedAgent(t)
  t.true(server.hellos[0]?.capabilities.terminal)
  t.deepEqual(server.hellos[0]?.terminals, [])
  const session = await new LiveTerminal(server, agent.agentId).open({ cols: 97, rows: 31, trueColor: true })
  session.type('stty size; tty; echo "term=$TERM color=$COLORTERM home=$PWD"\n')
  const text = await session.shows(/home=\/\S*\r\n/)
  t.regex(text, /31 97\r\n\/dev\/pts\/\d+\r\nterm=xterm-256color color=truecolor home=\S/)
  session.type('env | sort; echo "all-$((1 + 1))"\n')
  t.notRegex(await session.shows(/all-2/), /ENROLL|rsm_enr|NODE_/)
  session.type(`bash -c 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done'\n`)
  await session.shows(/\r\nready\r\n/)
  session.resize(120, 40)
  await session.shows(/40 120\r\n/)
  session.type('exit 7\n')
  t.deepEqual(await session.ended(), {
    sessionId: session.sessionId,
    exitCode: 7,
    signal: null,
    reason: null,
  })
  const sequences = session.frames().map(({ sequence }) => sequence)
  t.deepEqual(
    sequences,
    sequences.map((_, at) => at),
  )
  t.deepEqual(readdirSync(join(dataDir, 'terminals')), [], 'no file of the session stays')
})

test('a command is hidden from process lists, and its exit code or signal is reported', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const run = (command: string, more: object = {}) =>
    ranOnTerminal(server, agent.agentId, { command, ...more })
  const { text, end } = await run('tr "\\0" " " < /proc/$$/cmdline; echo; echo secret-word; exit 3')
  t.is(end.exitCode, 3)
  t.regex(text, /secret-word\r\n$/)
  t.notRegex(text.split('\r\n')[0] ?? '', /secret/)
  const unread = await run('cat; tty <&2', { noStdin: true })
  t.regex(unread.text, /^\/dev\/pts\/\d+\r\n$/, 'nothing to read, but still a terminal')
  t.like((await run('kill -KILL $$')).end, { exitCode: 137, signal: 'SIGKILL', reason: null })
  const wide = await run(`i=0; while [ $i -lt 3000 ]; do printf 'ä漢😀'; i=$((i+1)); done`)
  t.is(wide.text, 'ä漢😀'.repeat(3000))
})

test('a session that cannot be opened ends at once with the reason', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const reason = async (request: object) => (await ranOnTerminal(server, agent.agentId, request)).end.reason
  t.is(await reason({ shell: '/bin/nosuch' }), 'there is no shell /bin/nosuch on this host')
  t.is(await reason({ shell: 'no-such-shell' }), 'there is no shell no-such-shell on this host')
  t.is(await reason({ shell: '/etc' }), '/etc is not a program on this host')
  t.is(await reason({ shell: '/etc/passwd' }), '/etc/passwd is not a program on this host')
  t.regex(
    (await reason({ runAs: 'someone' })) ?? '',
    /not allowed to run as someone: .*--allow-run-as someone/,
  )
  t.is(
    await reason({ after: 3 }),
    'the session is gone: the agent of this host has restarted since',
    'a session of a previous agent is not opened again',
  )
})

test('P40 a session that is closed right after its request never begins', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = new LiveTerminal(server, agent.agentId)
  server.send('TERMINAL_OPEN', server.terminalOpen(agent.agentId, { sessionId: session.sessionId }))
  session.close()
  t.is((await session.ended()).reason, 'the session has ended')
  t.false(server.messages.some(({ type }) => type === 'TERMINAL_OPENED'))
})

test('P40 a failure to open a session ends the session, not the agent', async (t) => {
  const sent: unknown[] = []
  const verify = () => {
    throw new Error('no such module')
  }
  const terminals = new Terminals({ lack: null, verify, log: () => undefined } as never)
  terminals.begin({ send: (...message) => sent.push(message), hasRoom: () => true })
  await terminals.open({ sessionId: 's1' } as TerminalOpen)
  const reason = 'the agent of this host cannot open a terminal: no such module'
  const closed = { sessionId: 's1', exitCode: null, signal: null, reason }
  t.deepEqual(sent, [['TERMINAL_CLOSED', closed]])
})

test('the shell and its children, including detached ones, end with the session', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const leave = (name: string) =>
    `setsid sh -c 'echo $$ > ${dataDir}/${name}.setsid; exec sleep 900' & ` +
    `nohup sleep 901 >/dev/null 2>&1 & echo $! > ${dataDir}/${name}.nohup; ` +
    `sh -c 'trap "" HUP; echo $$ > ${dataDir}/${name}.deaf; sleep 902; sleep 903' &\n`
  const alive = (name: string) =>
    ['setsid', 'nohup', 'deaf'].filter((kind) => {
      const stat = readStat(Number(readFileSync(join(dataDir, `${name}.${kind}`), 'utf8')))
      return stat !== null && !stat.isZombie
    })
  const files = (name: string) =>
    `until [ -s ${dataDir}/${name}.deaf ] && [ -s ${dataDir}/${name}.setsid ]; do sleep 0.05; done; echo "left-$((2))"\n`
  const exits = await new LiveTerminal(server, agent.agentId).open()
  exits.type(leave('exits') + files('exits'))
  await exits.shows(/left-2/)
  t.is(alive('exits').length, 3)
  exits.type('exit\n')
  t.is((await exits.ended()).reason, null)
  t.deepEqual(alive('exits'), [])
  const closed = await new LiveTerminal(server, agent.agentId).open()
  closed.type(leave('closed') + files('closed'))
  await closed.shows(/left-2/)
  closed.close()
  t.is((await closed.ended()).reason, 'the session was closed')
  t.deepEqual(alive('closed'), [])
})

test('an agent ends processes left by a killed agent’s session, but none listed in a copied file', async (t) => {
  const directory = await temporaryDirectory(t)
  const torn = ['', '{', 'null', '[]', '{"bootId":"b"}', '{"bootId":"b","tree":{},"groups":[1]}']
  for (const [at, held] of torn.entries()) {
    mkdirSync(join(directory, `s${at}`))
    writeFileSync(join(directory, `s${at}`, 'held.json'), held)
  }
  const tree = { mark: 'm', root: null, uids: [1], cgroup: null, isBoxed: false }
  mkdirSync(join(directory, 'whole'))
  writeFileSync(join(directory, 'whole', 'held.json'), JSON.stringify({ bootId: 'b', tree, groups: [] }))
  mkdirSync(join(directory, 'copied'))
  const ofAnother = { bootId: 'b', directory: '1:1', tree: { ...tree, mark: 'another' }, groups: [] }
  writeFileSync(join(directory, 'copied', 'held.json'), JSON.stringify(ofAnother))
  const ended: unknown[] = []
  const end = async (one: unknown) => {
    ended.push(one)
    throw new Error('it cannot be ended')
  }
  const log: string[] = []
  const world = { containment: { end }, machine: { bootId: () => 'b' } } as never as Parameters<
    typeof sweepTerminals
  >[1]
  await sweepTerminals(directory, { ...world, log: (_, message) => log.push(message) })
  t.deepEqual(ended, [tree])
  t.deepEqual(log, ['could not end processes left by a session'])
  t.deepEqual(readdirSync(directory), ['whole'])
})
