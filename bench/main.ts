/**
 * `npm run bench`: one table, ours beside a baseline measured in the same run. Ratios hold, absolute times depend on the
 * machine. `npm run bench -- --agents 20` takes a smaller fleet.
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { benchExecution } from './execution.ts'
import { startFleet } from './fleet/fleet.ts'
import { benchMemory } from './memory.ts'
import type { Row } from './row.ts'
import { benchStartup } from './startup.ts'
import { benchStore } from './store.ts'

const { values } = parseArgs({ options: { agents: { type: 'string', default: '100' } } })

function print(rows: readonly Row[]): void {
  const shown = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))
  const table = rows.map((row) => [
    row.name,
    shown(row.ours),
    shown(row.baseline),
    row.unit,
    `${row.ratio.toFixed(2)} ×`,
    row.goal,
    row.met ? 'met' : 'MISSED',
  ])
  const all = [['measure', 'ours', 'baseline', 'unit', 'ratio', 'goal', ''], ...table]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? []
  for (const line of all)
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}\n`)
const rows: Row[] = []
const said = (what: string) => process.stderr.write(`measuring ${what} …\n`)
said('the store')
rows.push(...(await benchStore()))
said(`a fleet of ${values.agents} agents`)
const fleet = await startFleet(Number(values.agents))
try {
  for (const bench of [benchMemory, benchStartup, benchExecution]) {
    said(bench.name.replace('bench', '').toLowerCase())
    rows.push(...(await bench(fleet)))
  }
} finally {
  await fleet.stop()
}
print(rows)
