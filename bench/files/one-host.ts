import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { quantile, startTicker } from '../fleet/ticker.ts'
import { inTurn, ratioRow, watchMemory } from '../measure.ts'
import type { Row } from '../row.ts'
import { copy, memoryRow, type Place, scp, settle, writeRandom } from './place.ts'

const size = 1024
const rounds = 3
/** Milliseconds. */
const delayBound = 100

/** Delay of another host's lines during a copy vs the same time without one. */
async function delayRow({ fleet }: Place, work: () => Promise<number>): Promise<Row> {
  const ticker = await startTicker(fleet, 'host2')
  try {
    await settle()
    ticker.delays.length = 0
    const took = await work()
    const busy = ticker.delays.splice(0)
    await setTimeout(took)
    const [late, usual] = [quantile(busy, 0.99), quantile(ticker.delays, 0.99)]
    return {
      name: `delay of a line of another host while ${size} MiB are copied, p99 of ${busy.length}, vs without a copy`,
      unit: 'ms',
      ours: late,
      baseline: usual,
      ratio: late / usual,
      spread: `max ${quantile(busy, 1).toFixed(0)}`,
      goal: `≤ ${delayBound} ms`,
      met: late <= delayBound,
    }
  } finally {
    await ticker.stop()
  }
}

/** A large file copied to one host. */
export async function benchOneHost(place: Place): Promise<Row[]> {
  const { fleet, sshd, directory } = place
  const [from, ours, theirs] = ['file', 'ours', 'theirs'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  await writeRandom(from, size)
  const rate = async (path: string, work: () => Promise<number>) => {
    await rm(path, { force: true })
    return (size * 1000) / (await work())
  }
  await settle()
  const memory = watchMemory(fleet.child.pid)
  const measured = await inTurn(
    rounds,
    () => rate(ours, () => copy(fleet, from, `host1:${ours}`)),
    () => rate(theirs, () => scp(sshd, from, theirs)),
  )
  const name = `rsm cp of ${size} MiB to one host, vs scp`
  const rows = [
    ratioRow(name, 'MiB/s', measured, { atLeast: 0.6 }),
    memoryRow(`${size} MiB are copied to one host`, memory),
  ]
  await rm(ours)
  rows.push(await delayRow(place, () => copy(fleet, from, `host1:${ours}`)))
  for (const path of [from, ours, theirs]) await rm(path)
  return rows
}
