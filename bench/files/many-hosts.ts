import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inTurn, ratioRow, watchMemory } from '../measure.ts'
import type { Row } from '../row.ts'
import { copy, memoryRow, type Place, scp, settle, writeRandom } from './place.ts'

const size = 100
const rounds = 2

/** A file copied to all hosts at once. */
export async function benchManyHosts({ fleet, sshd, directory }: Place): Promise<Row[]> {
  const hosts = fleet.agents.length
  const from = join(directory, 'file')
  const to = join(directory, 'to')
  await writeRandom(from, size)
  const rate = async (work: () => Promise<unknown>) => {
    await rm(to, { recursive: true, force: true })
    await mkdir(to)
    const began = performance.now()
    await work()
    return (hosts * size * 1000) / (performance.now() - began)
  }
  const scpAll = () => Promise.all(Array.from({ length: hosts }, (_, n) => scp(sshd, from, join(to, `${n}`))))
  await settle()
  const memory = watchMemory(fleet.child.pid)
  const measured = await inTurn(
    rounds,
    () => rate(() => copy(fleet, from, '-a', '-y', `:${to}/%h`)),
    () => rate(scpAll),
  )
  const name = `rsm cp of ${size} MiB to ${hosts} hosts, vs as many scp at once`
  return [
    ratioRow(name, 'MiB/s', measured, { atLeast: 0.6 }),
    memoryRow(`${size} MiB are copied to ${hosts} hosts`, memory),
  ]
}
