import type { ExecutionContext } from 'ava'
import { clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { type Lane, type Linked, openLane } from '../../helpers/cluster/killed-server.ts'
import {
  livesThrough,
  reached,
  type ServerPoint,
  stdoutOf,
  toldOf,
  windows,
} from '../../helpers/faults/server-windows.ts'
import { turns } from '../../helpers/turns.ts'

/** Each lane is three servers. */
const laneCount = 3
/** Milliseconds: far less than the lease, because the lock of a killed server is released with its process. */
const longestTakeover = 5_000

const ends: (() => unknown)[] = []
const opening = () => openLane({ teardown: (end: () => unknown) => void ends.push(end) })
const free: Promise<Lane>[] = []
const turn = turns(laneCount)
const takeovers: number[] = []

/** Lends a lane to one caller at a time. */
function inLane<T>(work: (lane: Lane) => Promise<T>): Promise<T> {
  return turn(async () => {
    const lane = free.pop() ?? opening()
    try {
      return await work(await lane)
    } finally {
      free.push(lane)
    }
  })
}

async function killedAt(t: ExecutionContext, lane: Lane, point: ServerPoint, linked: Linked): Promise<void> {
  const { site, followed, takeover } = await lane.site(t, point, linked)
  await livesThrough(site, point)
  const { entries, resumed } = await followed()
  t.is(stdoutOf(entries), windows[point].stdout ?? 'one\ntwo\n')
  t.true(entries.every(({ id }, at) => at === 0 || id > (entries[at - 1]?.id ?? 0)))
  t.is(resumed, 0)
  const took = await takeover()
  if (took === null) return
  takeovers.push(took)
  t.log(`others owned its tasks after ${Math.round(took)} ms`)
  t.true(took < longestTakeover, `${took} ms`)
}

const all = Object.keys(windows) as ServerPoint[]
const elsewhere = all.filter((point) => windows[point].isOfPlan)
const cases: [Linked, string, ServerPoint[]][] = [
  ['here', 'with its links', all],
  ['elsewhere', 'with the links elsewhere', elsewhere],
]
for (const [linked, told, points] of cases)
  for (const point of points)
    test(`F07 one of three servers is killed at ${point}, ${told}: ${toldOf(windows[point])}`, (t) =>
      inLane((lane) => reached(point, () => killedAt(t, lane, point, linked))))

test.after('half of the takeovers take 2 s at most', (t) => {
  const [median = 0] = takeovers.sort((one, other) => one - other).slice(takeovers.length / 2)
  t.log(
    `${takeovers.length} takeovers, half of them within ${Math.round(median)} ms, the longest ${Math.round(takeovers.at(-1) ?? 0)} ms`,
  )
  t.true(median <= 2_000)
})

test.after.always('the servers end', async () => {
  for (const end of ends.reverse()) await end()
})
