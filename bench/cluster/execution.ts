import { untilFinal } from '../execution.ts'
import { type Fleet, startFleet } from '../fleet/fleet.ts'
import { inTurn, ratioRow } from '../measure.ts'
import type { Row } from '../row.ts'
import { startShared } from './shared.ts'

const rounds = 7

/** `true` on all agents of a server on PostgreSQL vs as many on the file store (reliability L07). */
export async function benchSharedExecution(onFiles: Fleet): Promise<Row[]> {
  const size = onFiles.agents.length
  const fleet = await startFleet(size, () => startShared(1))
  try {
    const measured = await inTurn(
      rounds,
      () => untilFinal(fleet),
      () => untilFinal(onFiles),
    )
    const name = `PostgreSQL: POST to final, ${size} agents, vs the file store`
    return [ratioRow(name, 'ms', measured, { atMost: 1.5 })]
  } finally {
    await fleet.stop()
  }
}
