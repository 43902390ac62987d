import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

const hosts = ['web1', 'web2', 'web3']

test('F07 a server killed during a task and restarted ends the task correctly, with exact output', async (t) => {
  const server = await startServerProcess(t)
  for (const hostname of hosts) await realAgent(t, server, { hostname })
  const directory = temporaryDirectory(t)
  const gate = join(directory, 'gate')
  const written = join(directory, 'written')
  const lines = 'for i in $(seq 1 40); do echo "line $i"; sleep 0.05; done'
  const script = `${lines}; echo >>${written}; until [ -e ${gate} ]; do sleep 0.05; done; echo last; exit 4`
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const { done, shows } = startRsm(['exec', '--all', '-y', '--', script], env)
  await shows('line 5\n')
  await server.kill()
  // The scripts keep writing while the server is down.
  await until(
    'all scripts have written their lines',
    () => statSync(written, { throwIfNoEntry: false })?.size === hosts.length,
  )
  await server.start()
  writeFileSync(gate, '')
  const { exit, stdout, stderr } = await done
  t.is(exit, 1, stderr)
  t.regex(stderr, /exit 4/)
  const expected = [...Array.from({ length: 40 }, (_, index) => `line ${index + 1}`), 'last']
  for (const host of hosts) {
    const own = stdout.split('\n').filter((line) => line.startsWith(`${host}: `))
    t.deepEqual(
      own,
      expected.map((line) => `${host}: ${line}`),
      host,
    )
  }
})
