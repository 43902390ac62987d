import { readdir, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { control } from '../../../../src/cli/command/control.ts'
import { systemClock } from '../../../../src/disk/clock.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../../fixtures/rsm.ts'
import { startInjectedServer } from '../../../helpers/servers/server.ts'

const day = 86_400

test('A03 rsm server confirm-clock ends the doubt: old data expires, and the audit log records it', async (t) => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const server = await startInjectedServer(t, { clock, logLevel: 'ERROR' })
  const { hostId } = await server.enroll('web1')
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

test('A03 a clock that is not in doubt can be confirmed', async (t) => {
  const server = await startInjectedServer(t)
  const rsm = await runRsm(
    ['server', 'confirm-clock', '--data-dir', server.dataDir],
    cleanEnv(temporaryDirectory(t)),
  )
  t.is(rsm.exit, 0)
  t.regex(rsm.stdout, /; it needed no confirmation$/m)
})

for (const written of ['presence.json', 'audit/audit.log', 'store/journal', null])
  test(`A03 an unused older server ${written ? `that wrote ${written} a minute before its upgrade starts with a trusted clock` : 'that wrote nothing starts with a clock in doubt'}`, async (t) => {
    const hour = 3_600_000
    let ahead = 0
    const clock = { ...systemClock, now: () => Date.now() + ahead }
    const server = await startInjectedServer(t, { clock, logLevel: 'ERROR' })
    await server.stop()
    await rm(join(server.dataDir, 'clock.json'))
    const names = (await readdir(server.dataDir, { recursive: true })).filter((name) =>
      name.startsWith(written ?? 'nothing'),
    )
    ahead = 3 * hour
    for (const name of names)
      await utimes(join(server.dataDir, name), new Date(), new Date(clock.now() - 60_000))
    await server.restart()
    const { clock: doubt } = await server.data('GET', '/api/server/status')
    t.is(doubt && Math.round(doubt.aheadSeconds / 3600), written ? null : 3)
  })
