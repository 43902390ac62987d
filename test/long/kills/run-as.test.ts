import { spawnSync } from 'node:child_process'
import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { plainAgent } from '../../helpers/agents/plain-agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'

const isRoot = process.getuid?.() === 0
const hasBwrap = spawnSync('bwrap', ['--version']).status === 0
const asRoot = isRoot ? test : test.skip // Only root may become another user.
const boxed = isRoot && hasBwrap ? test : test.skip // bubblewrap has to be installed.

asRoot('A18 a non-root agent returns 126 for another user, and runs scripts as its own', async (t) => {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  await plainAgent(t, server, { allowRunAs: ['daemon'] })
  await server.linked()
  t.like(server.hellos[0]?.capabilities, { runAs: 'nobody', runsAsRoot: false, sandbox: 'none' })
  server.execute('plain', { taskId: 'other', runAs: 'daemon' })
  const other = await server.completed('other')
  t.is(other.exitCode, 126)
  t.regex(other.error ?? '', /the agent runs as nobody, and only root can become another user/)
  server.execute('plain', { taskId: 'own', script: 'id -un', workDir: '/' })
  await server.completed('own')
  t.is(server.text('own'), 'nobody\n')
})

boxed(
  'strict: a timeout ends the whole tree, even processes that left the session and ignore TERM',
  async (t) => {
    const { server, agent } = await linkedAgent(t, {
      runAs: 'nobody',
      allowRunAs: ['daemon'],
      sandbox: 'strict',
    })
    const needle = `rsm-boxed-${process.pid}-${Date.now()}`
    const script = `trap '' TERM; echo up
setsid env -i /bin/bash -c 'trap "" TERM; exec -a ${needle} sleep 600' &
( setsid env -i /bin/bash -c 'exec -a ${needle} sleep 600' & ); wait; sleep 600`
    server.execute(agent.agentId, { taskId: 'stubborn', script, timeout: 1 })
    const complete = await server.completed('stubborn')
    t.is(complete.status, 'TIMEOUT')
    t.is(spawnSync('pgrep', ['-f', needle]).status, 1)
    t.regex(server.hellos[0]?.capabilities.containment ?? '', /^(cgroup|pid-namespace)$/)
  },
)
