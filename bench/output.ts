import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFleet } from './fleet/fleet.ts'
import { benchFlood } from './output/flood.ts'
import { benchThroughput } from './output/throughput.ts'
import type { Row } from './row.ts'

/** Output from a host to the server and to its followers; floods come first, while all processes are fresh. */
export async function benchOutput(): Promise<Row[]> {
  const rows: Row[] = []
  for (const maxOutputBytes of [null, 2 ** 31]) {
    const fleet = await startFleet(2)
    try {
      rows.push(...(await benchFlood(fleet, maxOutputBytes)))
    } finally {
      await fleet.stop()
    }
  }
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-output-'))
  const fleet = await startFleet(2)
  try {
    return [...(await benchThroughput(fleet, directory)), ...rows]
  } finally {
    await fleet.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
