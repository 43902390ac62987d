import { spawnSync } from 'node:child_process'
import test from 'ava'
import { execa } from 'execa'
import { startAgent } from '../../../src/agent/main.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { adminPassword, startTestServer } from '../../helpers/servers/server.ts'

const missing = ['curl', 'jq', 'timeout'].find((program) => spawnSync(program, ['--version']).error)
const whereThere = missing === undefined ? test : test.skip

// Skipped without curl or jq, because the tour consists of them.
whereThere('the tour of the whole REST API completes with every stated status', async (t) => {
  const server = await startTestServer(t)
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const agent = await startAgent({
    ...agentOptions(server, await temporaryDirectory(t)),
    enrollToken: token,
    hostname: 'linked',
  })
  t.teardown(() => agent.stop())
  const { all, exitCode } = await execa('bash', ['examples/api-tour.sh', server.url], {
    env: { RSM_PASSWORD: adminPassword },
    all: true,
    reject: false,
  })
  t.is(exitCode, 0, all)
  t.regex(all, /\n\d+ calls, every status as stated$/)
  t.regex(all, /hello 3 from /, 'the script ran on the linked agent')
  t.false(/rsm_(ses|pat|agt|enr)_/.test(all), 'no token is printed')
  t.is((await server.data('GET', '/api/hosts')).totalElements, 1, 'the tour leaves no host behind')
})
