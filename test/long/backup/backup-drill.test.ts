import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { commandsOf, startShell } from '../../helpers/examples/shell.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('the drill of docs/operate/backup.md succeeds with the backup and its keys, and fails with other keys', async (t) => {
  const [server, other] = await Promise.all([startTestServer(t), startTestServer(t)])
  const { hostId } = await realAgent(t, server, { hostname: 'web1' })
  await finished(server, await startTask(server, [hostId], { script: { content: 'echo kept' } }))
  const page = readFileSync('docs/operate/backup.md', 'utf8')
  const [first = ''] = page.split('\n## ')
  const [, drill = ''] = page.split('\n## Drill\n')
  const home = temporaryDirectory(t)
  const shell = startShell(t, home)
  for (const name of ['backup', 'backup-of-keys', 'srv']) mkdirSync(join(home, name))
  const run = (command: string) =>
    shell.run(
      command
        .replaceAll('/var/lib/rsm/server', server.dataDir)
        .replaceAll(/ (\/backup|\/srv)/g, ` ${home}$1`),
    )
  for (const command of commandsOf(first, ['# '])) {
    const { exit, text } = await run(command)
    t.is(exit, 0, `${command}: ${text}`)
  }
  const commands = commandsOf(drill, ['# '])
  t.is(commands.length, 4)
  for (const command of commands) {
    const { exit, text } = await run(command)
    t.is(exit, 0, `${command}: ${text}`)
    if (command.includes('doctor')) t.notRegex(text, /^(error|warning)/m)
  }
  t.false(existsSync(join(home, 'srv/rsm-drill')))
  rmSync(join(home, 'backup-of-keys/keys'), { recursive: true })
  cpSync(join(other.dataDir, 'keys'), join(home, 'backup-of-keys/keys'), { recursive: true })
  const exits: number[] = []
  for (const command of commands) exits.push((await run(command)).exit)
  t.deepEqual(exits, [0, 0, 1, 0])
})
