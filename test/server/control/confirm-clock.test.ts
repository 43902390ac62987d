import test from 'ava'
import { control } from '../../../src/client/control.ts'
import { systemClock } from '../../../src/server/clock.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const day = 86_400

test('A03 rsm server confirm-clock ends the doubt: what is past its time by then is past it, and the audit log says who', async (t) => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const server = await startTestServer(t, { clock, logLevel: 'ERROR' })
  const { hostId } = await server.enrol('web1')
  const body = { script: { content: 'true' }, target: { hostIds: [hostId] }, queueSeconds: 0 }
  const start = async () => {
    const answer = await server.api('POST', '/api/tasks', body, { 'idempotency-key': 'k' })
    return answer.body.data.taskId as string
  }
  const { token } = await server.data('POST', '/api/tokens', { name: 'long', expiresInDays: 365 })
  server.token = token
  const first = await start()
  ahead = 40 * day * 1000
  t.is(await start(), first, 'the key of a minute ago is not 40 days old')
  const { clock: doubt } = await server.data('GET', '/api/server/status')
  t.is(Math.round(doubt.aheadSeconds / day), 40)
  t.true(doubt.agreesInSeconds > day - 120)
  const rsm = await runRsm(
    ['server', 'confirm-clock', '--data-dir', server.dataDir],
    cleanEnv(temporaryDirectory(t)),
  )
  t.is(rsm.exit, 0)
  t.regex(rsm.stdout, /^confirmed: the clock of the server shows 20\d\d-/)
  t.not(await start(), first)
  t.is((await server.data('GET', '/api/server/status')).clock, null)
  const { content } = await server.data('GET', '/api/audit?action=clock.confirm')
  t.like(content[0], { actor: { type: 'system' }, outcome: 'SUCCESS' })
  t.is(Math.round(content[0].detail.aheadSeconds / day), 40)
  t.is((await control(server.dataDir, 'confirm-clock', {})).doubt, null)
})

test('A03 a clock that nobody doubts may be confirmed', async (t) => {
  const server = await startTestServer(t)
  const rsm = await runRsm(
    ['server', 'confirm-clock', '--data-dir', server.dataDir],
    cleanEnv(temporaryDirectory(t)),
  )
  t.is(rsm.exit, 0)
  t.regex(rsm.stdout, /; it was not doubted$/m)
})
