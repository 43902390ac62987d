import { startBareLoop } from './bare/loop.ts'
import { untilFinal } from './execution.ts'
import { startProtocolFleet } from './fleet/protocol-fleet.ts'
import { inTurn, ratioRow } from './measure.ts'
import type { Row } from './row.ts'

const agents = 1000
const perProcess = 100
const rounds = 5

/**
 * `true` on many protocol-level agents: the overhead of server and protocol, because both sides spawn alike (reliability L02).
 */
export async function benchScale(): Promise<Row[]> {
  const fleet = await startProtocolFleet(agents, perProcess)
  try {
    const bare = await startBareLoop(agents, perProcess)
    try {
      const measured = await inTurn(
        rounds,
        () => untilFinal(fleet),
        () => bare.run('true'),
      )
      const name = `POST to final, ${agents} protocol-level agents, vs a bare ws loop`
      return [ratioRow(name, 'ms', measured, { atMost: 1.3 })]
    } finally {
      await bare.stop()
    }
  } finally {
    await fleet.stop()
  }
}
