import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { upload } from '../../helpers/clients/files.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

test('a PostgreSQL store is backed up with its server running and stopped, and restored to a data directory and another database', async (t) => {
  t.timeout(110_000)
  const postgres = await startPostgres(atExit)
  const [store, other] = [
    await postgres.database({ migrated: false }),
    await postgres.database({ migrated: false }),
  ]
  const home = temporaryDirectory(t)
  const at = (name: string) => join(home, name)
  await writeFile(at('passphrase'), 'a passphrase for tests\n', { mode: 0o600 })
  const secret = ['--passphrase-file', at('passphrase')]
  const rsm = async (...argv: string[]) => {
    const ran = await runRsm(['server', ...argv], cleanEnv(home))
    t.is(ran.exit, 0, ran.stderr)
    return ran
  }
  const onStore = (address: string, dataDir: string) => ({
    store: address,
    keysDir: at('keys'),
    dataDir,
    serverName: 'a',
  })
  const server = await startServerProcess(t, { options: onStore(store, at('a')) })
  const [web1, web2] = [await server.enroll('web1'), await server.enroll('web2')]
  const agent = await ScriptedAgent.link(server, web1)
  agent.serve(() => ({ output: 'größer 😀\n' }))
  const ended = await startTask(server, [web1.hostId])
  await finished(server, ended)
  const { fileId } = await upload(server, 'some bytes')
  const waiting = await startTask(server, [web2.hostId], { queueSeconds: 3600 })
  const before = await entries(server, ended)

  const made = await rsm('backup', at('running'), '--data-dir', at('a'), '--with-keys', ...secret, '--json')
  t.like(JSON.parse(made.stdout), { store: 'postgresql', hasKeys: true, hasOutput: true, damaged: [] })
  const { content } = await server.data('GET', '/api/audit?action=server.backup')
  t.is(content.length, 1)
  await agent.cut()
  t.is((await server.terminate()).code, 0)
  const argv = ['--store', store, '--keys', at('keys'), '--with-keys', ...secret]
  await rsm('backup', at('stopped'), '--data-dir', at('none'), ...argv)

  const seen = async () => {
    t.deepEqual(await entries(server, ended), before)
    t.like(await server.data('GET', `/api/files/${fileId}`), { size: 10, isComplete: true })
    t.like((await server.data('GET', '/api/server/status')).restore, { tasks: 1, executions: 1 })
    t.is((await server.data('GET', `/api/tasks/${waiting}`)).status, 'RUNNING')
  }
  await rsm('restore', at('running'), '--data-dir', at('b'), ...secret)
  await server.start({ SERVER_OPTIONS: JSON.stringify({ dataDir: at('b') }) })
  await seen()
  t.is((await server.terminate()).code, 0)

  await rsm('restore', at('stopped'), '--data-dir', at('c'), ...secret)
  await rsm('doctor', '--data-dir', at('c'), '--port', '0')
  await rsm('migrate', '--from', at('c'), '--store', other)
  await server.start({ SERVER_OPTIONS: JSON.stringify(onStore(other, at('d'))) })
  await seen()
  t.is((await server.terminate()).code, 0)
})
