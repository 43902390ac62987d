import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { isoTime } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createPresence } from '../../../src/server/storage/files/presence.ts'
import { createLocalHints } from '../../../src/server/storage/local-hints.ts'
import { until } from '../../helpers/until.ts'

const begin = Date.parse('2026-03-02T09:30:00.000Z')

test('the last heartbeat of a host survives a crash, to the minute, and is not written more often', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-presence-'))
  const path = join(directory, 'presence.json')
  let passed = 0
  const clock = { now: () => begin + passed, monotonic: () => passed }
  // Long enough that no step of the clock counts as silence.
  const place = { path, hints: createLocalHints(), log: createLog('ERROR') }
  const options = { ...place, heartbeatInterval: 600, version: '0.1.0', clock }
  const presence = await createPresence(options)
  t.teardown(async () => {
    await presence.close()
    await rm(directory, { recursive: true, force: true })
  })
  const beat = (at: number) => {
    passed = at
    presence.heartbeat(1, { status: 'HEALTHY', timestamp: isoTime(clock.now()) })
  }
  const kept = async () => {
    const rows = JSON.parse(await readFile(path, 'utf8').catch(() => '[]')) as { lastHeartbeatAt: string }[]
    return rows.map(({ lastHeartbeatAt }) => Date.parse(lastHeartbeatAt) - begin)
  }
  const isKept = (at: number) => until(`${at} is kept`, async () => (await kept())[0] === at)
  beat(0)
  await isKept(0)
  beat(30_000)
  await delay(2_500)
  t.deepEqual(await kept(), [0])
  beat(61_000)
  await isKept(61_000)
  const { mtimeNs } = await stat(path, { bigint: true })
  passed = 200_000
  await delay(2_500)
  t.is((await stat(path, { bigint: true })).mtimeNs, mtimeNs, 'no heartbeat since')
  const afterCrash = await createPresence(options)
  t.teardown(() => afterCrash.close())
  t.like(await afterCrash.views([1]), [{ lastHeartbeatAt: isoTime(begin + 61_000) }])
})
