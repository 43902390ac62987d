import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '../../../../src/disk/clock.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../../fixtures/rsm.ts'
import { startInjectedServer, type TestServer } from '../../../helpers/servers/server.ts'

const day = 86_400

const rsm = (t: ExecutionContext, server: TestServer, ...words: string[]) =>
  runRsm(['server', ...words, '--data-dir', server.dataDir], cleanEnv(temporaryDirectory(t)))

test('A03 rsm server confirm-clock without a running server confirms the clock for the next one', async (t) => {
  const clock = { ...systemClock, now: () => Date.now() - 40 * day * 1000 }
  const server = await startInjectedServer(t, { clock })
  await server.stop()
  const confirmed = await rsm(t, server, 'confirm-clock', '--json')
  t.is(confirmed.exit, 0, confirmed.stderr)
  t.is(Math.round(JSON.parse(confirmed.stdout).doubt.aheadSeconds / day), 40)
  const again = await rsm(t, server, 'confirm-clock')
  t.regex(again.stdout, /; it needed no confirmation$/m)
})

test('rsm server confirm-clock and confirm-restore fail without a data directory', async (t) => {
  const nowhere = join(temporaryDirectory(t), 'nowhere')
  for (const command of ['confirm-clock', 'confirm-restore']) {
    const { exit, stderr } = await runRsm(
      ['server', command, '--data-dir', nowhere],
      cleanEnv(temporaryDirectory(t)),
    )
    t.is(exit, 5)
    t.regex(stderr, /is not that of a server: it has no store/)
  }
})
