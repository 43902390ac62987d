import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'
import { missing } from '../../helpers/terminals/tmux.ts'
import { until } from '../../helpers/until.ts'

const withAsciinema = missing('asciinema').length > 0 ? test.skip : test

withAsciinema(
  'F20 the recording of a session whose server was killed during output can be exported and played by asciinema',
  async (t) => {
    const server = await startServerProcess(t)
    const { hostId } = await realAgent(t, server, { hostname: 'web1' })
    await until(
      'the agent is linked',
      async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected,
    )
    const home = temporaryDirectory(t)
    const env = { RSM_URL: server.url, RSM_TOKEN: server.token }
    const session = bashOnPty(t, `exec ${rsm} terminal web1 --shell sh -- 'seq 1000000'`, home, env)
    await session.shows(/\n5000\r/)
    await server.kill()
    session.end()
    await session.ended
    await server.start()

    const run = commandLine(t, server)
    const list = await run(['recordings', 'list'])
    const [, sessionId = ''] = /^(\S+) +web1 +admin +/m.exec(list.stdout) ?? []
    t.not(sessionId, '', list.stdout)
    // The agent sends again the output that was shown and not yet written.
    await until(
      'the output is recorded',
      async () => (await server.data('GET', `/api/terminals/${sessionId}`)).recordingBytes > 40_000,
    )
    const file = join(home, 'session.cast')
    const exported = await run(['recordings', 'export', sessionId, file])
    t.is(exported.exit, 0, exported.stderr)
    t.is(statSync(file).mode & 0o777, 0o600)
    const again = await run(['recordings', 'export', sessionId, file])
    t.is(again.exit, 2)
    t.regex(again.stderr, /use --yes/)

    const all = Array.from({ length: 1_000_000 }, (_, at) => `${at + 1}\n`).join('')
    const played = await run(['recordings', 'play', file])
    t.true(played.stdout.length > 20_000)
    t.is(played.stdout, all.slice(0, played.stdout.length))
    const cat = bashOnPty(t, `asciinema cat ${file} >cat.txt`, home)
    t.is(await cat.ended, 0, cat.shown)
    t.is(
      // The kill may separate the last \r from its \n.
      readFileSync(join(home, 'cat.txt'), 'utf8')
        .replaceAll('\r\n', '\n')
        .replace(/[\r\n]*$/, ''),
      played.stdout.replace(/\n*$/, ''),
    )
  },
)
