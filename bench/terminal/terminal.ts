import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBareTerminal } from '../bare/terminal.ts'
import { type Fleet, startFleet } from '../fleet/fleet.ts'
import { writeLines } from '../output/lines.ts'
import type { Row } from '../row.ts'
import { benchCat, benchInterrupt } from './flow.ts'
import { benchKeys } from './keys.ts'
import { benchMemory } from './memory.ts'
import { openTerminal } from './ours.ts'
import { type Pair, ready } from './pair.ts'

/** A shell without line editing, so that the kernel echoes. */
const shell = '/bin/sh'
const shownMB = 50

/** Terminals vs a relay of frames with node-pty behind it. */
export async function benchTerminal(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-terminal-'))
  const fleet = await startFleet(1)
  try {
    const log = join(directory, 'log')
    await writeLines(log, shownMB)
    const { size } = await stat(log)
    return await measure(fleet, `cat ${log}\r`, size)
  } finally {
    await fleet.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure(fleet: Fleet, cat: string, catBytes: number): Promise<Row[]> {
  // Memory comes first, while all processes are fresh.
  const memory = await onPair(fleet, cat, catBytes, (pair) => benchMemory(fleet, pair))
  const rows: Row[] = []
  for (const bench of [benchKeys, benchCat, benchInterrupt])
    rows.push(...(await onPair(fleet, cat, catBytes, bench)))
  return [...rows, ...memory]
}

/** Measures on new terminals, because the server ends a session whose recording is full. */
async function onPair(
  fleet: Fleet,
  cat: string,
  catBytes: number,
  bench: (pair: Pair) => Promise<Row[]>,
): Promise<Row[]> {
  const ours = await ready(openTerminal(fleet, shell))
  const bare = await ready(openBareTerminal([shell]))
  try {
    return await bench({ ours, bare, cat, catBytes })
  } finally {
    await ours.close()
    await bare.close()
  }
}
