import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { upgradeServer } from '../../../src/install/upgrade/upgrade-server.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('data acknowledged by a version that is rolled back stays with the previous executable', async (t) => {
  const server = await startTestServer(t)
  const directory = temporaryDirectory(t)
  const [target, path] = [join(directory, 'rsm'), join(directory, 'new')]
  writeFileSync(target, 'former')
  writeFileSync(path, 'new')
  let starts = 0
  // It accepts requests just after the last check whether it is ready.
  const upgrade = upgradeServer({
    dataDir: server.dataDir,
    target,
    from: '0.1.0',
    candidate: { path, version: '0.2.0', sha256: '', isSigned: false },
    server: {
      by: 'this test',
      startLine: null,
      stop: () => server.stop(),
      async start() {
        await server.restart()
        if (starts++ > 0) return { ended: new Promise(() => undefined) }
        t.is(readFileSync(target, 'utf8'), 'new')
        await server.data('POST', '/api/clusters', { name: 'acknowledged' })
        return { ended: Promise.resolve('it came late') }
      },
    },
    status: async () => ({ pid: starts, version: '0.1.0', ready: starts !== 1 }),
    note: async () => undefined,
    say: () => undefined,
  })
  await t.throwsAsync(upgrade, {
    message:
      'rsm 0.2.0 did not become ready: it came late; rsm 0.1.0 runs again, with the data of 0.2.0, which had accepted requests',
  })
  t.is(readFileSync(target, 'utf8'), 'former')
  const { content } = await server.data('GET', '/api/clusters')
  t.is(content[0].name, 'acknowledged')
})
