import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { anotherUser, asRoot } from '../../helpers/agents/modes.ts'
import { LiveTerminal } from '../../helpers/terminals/terminal-session.ts'

const names: readonly (readonly [name: string, value: string, says: RegExp])[] = [
  ['LD_PRELOAD', '/x.so', /dynamic linker/],
  ['LD_DEBUG', 'libs', /dynamic linker/],
  ['BASH_ENV', '/x', /shell/],
  ['ENV', '/x', /shell/],
  ['IFS', 'x', /shell/],
  ['PATH', '/x', /programs/],
  ['HOME', '/x', /set by the agent/],
  ['RSM_EXECUTION', 'x', /reserved for rsm/],
  ['RSM_TAG_x', 'x', /reserved for rsm/],
  ['BASH_FUNC_x%%', '() { id; }', /not a valid variable name/],
  ['1A', 'x', /not a valid variable name/],
  ['A=B', 'x', /not a valid variable name/],
  ['A;id', 'x', /not a valid variable name/],
  ['', 'x', /not a valid variable name/],
  ['A', 'a\0b', /NUL/],
  ['A', 'x'.repeat(128 * 1024), /has more than \d+ bytes/],
]

test('the agent refuses variables that rsm servers never send', async (t) => {
  const { server, agent } = await linkedAgent(t)
  for (const [at, [name, value, says]] of names.entries()) {
    const taskId = `t${at}`
    server.execute(agent.agentId, { taskId, script: 'echo ran', params: { [name]: value } })
    const { exitCode, error } = await server.completed(taskId)
    t.is(exitCode, 126, name)
    t.regex(error ?? '', says, name)
    t.is(server.text(taskId), '', name)
  }
  const told = { RSM_HOST: 'web1', RSM_HOST_ID: '1', RSM_TAGS: 'a', RSM_TAG_A_1: '', RSM_CLUSTERS: '' }
  server.execute(agent.agentId, { taskId: 'told', script: 'echo "$RSM_HOST"', params: told })
  t.is((await server.completed('told')).exitCode, 0)
  t.is(server.text('told'), 'web1\n')
})

asRoot('params of another user’s script do not reach the root processes that start it', async (t) => {
  const { server, agent } = await linkedAgent(t, anotherUser)
  // Names that are not reserved, but that a shell, setpriv or the C library reads.
  const params = { LANGUAGE: '/x', LC_ALL: '/x', TMOUT: '1', TMPDIR: '/x', A: "'; id; '" }
  const script = 'echo "$PPID $LANGUAGE$LC_ALL$TMOUT$TMPDIR$A"; exec sleep 600'
  server.execute(agent.agentId, { taskId: 'clean', script, params })
  await server.until(() => server.text('clean').endsWith('\n'), 'the script runs')
  const [wrapper = ''] = server.text('clean').split(' ')
  t.is(server.text('clean'), `${wrapper} ${Object.values(params).join('')}\n`)
  // The test reads the environment, because only root may.
  const variables = readFileSync(`/proc/${wrapper}/environ`, 'latin1').split('\0')
  t.true(variables.length > 3)
  for (const name of Object.keys(params))
    t.false(
      variables.some((line) => line.startsWith(`${name}=`)),
      name,
    )
  server.send('CANCEL_SCRIPT', { taskId: 'clean' })
  await server.completed('clean')
})

asRoot('a file order with a script field is refused, and nothing is written', async (t) => {
  const { server, agent } = await linkedAgent(t, anotherUser)
  const directory = mkdtempSync('/var/tmp/rsm-lying-')
  t.teardown(() => rmSync(directory, { recursive: true }))
  const gate = { script: 'true', scriptType: 'BASH', timeout: 1, retries: 0, intervalSeconds: 0 }
  const path = join(directory, 'written')
  for (const [name, value] of Object.entries({
    scriptName: `../../../../../../../..${path}`,
    upgrade: {},
    verify: gate,
    rollback: gate,
    stdin: {},
    limits: {},
    workDir: directory,
  })) {
    const file = { fileId: 'x', size: 1, sha256: '0'.repeat(64) }
    const copy = { kind: 'FILE' as const, file, path }
    server.order('COPY_FILE', agent.agentId, { taskId: name, copy, [name]: value })
    const { exitCode, error } = await server.completed(name)
    t.is(exitCode, 126, name)
    t.is(error, `invalid order: a file transfer has no field ${name}`)
  }
  t.false(existsSync(path))
})

test('a scriptName that is a path is rejected as an invalid message', async (t) => {
  const { server, agent } = await linkedAgent(t)
  for (const scriptName of ['../x', '/etc/x', '.x', 'a/b', '', 'a b', 'x'.repeat(65)]) {
    const before = server.errors.length
    server.execute(agent.agentId, { taskId: 'named', script: 'true', scriptName })
    await server.until(() => server.errors.length > before, `${scriptName} is refused`)
  }
  t.is(server.of('named').completes.length, 0)
})

asRoot('no spelling of runAs gets around --allow-run-as', async (t) => {
  const { server, agent } = await linkedAgent(t, anotherUser)
  for (const [at, runAs] of [
    'root',
    '0',
    '+0',
    '#0',
    '',
    'Root',
    'root ',
    'daemon,root',
    'daemon\nroot',
  ].entries()) {
    server.execute(agent.agentId, { taskId: `t${at}`, script: 'id -u', runAs })
    const { exitCode, error } = await server.completed(`t${at}`)
    t.is(exitCode, 126, runAs)
    t.regex(error ?? '', /the agent needs --allow-run-as/, runAs)
    const terminal = await new LiveTerminal(server, agent.agentId).open({ runAs, command: 'id -u' })
    t.regex((await terminal.ended()).reason ?? '', /the agent needs --allow-run-as/, runAs)
  }
})

test('an invalid working directory fails only its own script', async (t) => {
  const { server, agent } = await linkedAgent(t)
  for (const [at, workDir] of [
    '/tmp\0/x',
    `/${'x'.repeat(5000)}`,
    '/dev/null',
    '/proc/self/fd/5',
  ].entries()) {
    server.execute(agent.agentId, { taskId: `t${at}`, script: 'echo ran', workDir })
    t.is((await server.completed(`t${at}`)).exitCode, 126, workDir)
    t.is(server.text(`t${at}`), '', workDir)
  }
  server.execute(agent.agentId, { taskId: 'next', script: 'echo ran' })
  t.is((await server.completed('next')).exitCode, 0)
})
