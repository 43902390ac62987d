import { startFleet } from '../fleet/fleet.ts'
import { inTurn, median, ratioRow } from '../measure.ts'
import type { Row } from '../row.ts'
import { echoes } from '../terminal/keys.ts'
import { openTerminal } from '../terminal/ours.ts'
import { ready } from '../terminal/pair.ts'
import { startShared } from './shared.ts'

const rounds = 5
const shell = '/bin/sh'
/** Milliseconds. */
const most = 2

/** From a key to its echo at a server without the agent's link vs the server with it (reliability L07). */
export async function benchSharedKeys(): Promise<Row[]> {
  const fleet = await startFleet(1, () => startShared(2))
  try {
    const [linked, other] = fleet.servers
    if (!linked || !other) throw new Error('no two servers')
    const across = await ready(openTerminal(other, shell))
    const same = await ready(openTerminal(linked, shell))
    try {
      const measured = await inTurn(
        rounds,
        async () => median(await echoes(across, true)),
        async () => median(await echoes(same, true)),
      )
      const name = 'PostgreSQL: a key to its echo, p50 across servers, vs on one server'
      const row = ratioRow(name, 'ms', measured, { atLeast: 0 })
      const more = measured.ours - measured.baseline
      return [{ ...row, goal: `≤ +${most} ms`, met: more <= most }]
    } finally {
      await across.close()
      await same.close()
    }
  } finally {
    await fleet.stop()
  }
}
