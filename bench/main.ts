/**
 * `npm run bench` prints one table: our measures, each vs a baseline of the same run. Ratios are comparable between machines,
 * absolute times are not.
 *
 *   npm run bench -- --agents 20                  with a smaller fleet
 *   npm run bench -- rest store                   only these groups
 *   npm run bench -- startup --node PATH          the start of the command line, on another Node too
 *   npm run bench -- file --file packages/rsm-linux-x64 --node PATH
 *                                                 the single executable vs the Node that it contains
 */
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { programs } from '../test/helpers/servers/postgres-instances.ts'
import { benchBackup } from './backup.ts'
import { benchCancel } from './cancel.ts'
import { benchSharedExecution } from './cluster/execution.ts'
import { benchSharedHeartbeats } from './cluster/heartbeats.ts'
import { benchSharedKeys } from './cluster/keys.ts'
import { benchSharedOutput } from './cluster/output.ts'
import { benchSending } from './cluster/sending.ts'
import { benchSpread } from './cluster/spread.ts'
import { benchTakeover } from './cluster/takeover.ts'
import { benchExecution } from './execution.ts'
import { benchFile } from './file.ts'
import { benchFiles } from './files/files.ts'
import { type Fleet, startFleet } from './fleet/fleet.ts'
import { benchHerd } from './herd/herd.ts'
import { benchHistory } from './history/history.ts'
import { benchLoop } from './loop.ts'
import { benchMemory } from './memory.ts'
import { benchFolding } from './output/folding.ts'
import { benchOutput } from './output.ts'
import { benchRest } from './rest/rest.ts'
import type { Row } from './row.ts'
import { benchScale } from './scale.ts'
import { benchSchedules } from './schedules.ts'
import { benchStartup } from './startup.ts'
import { benchStore } from './store.ts'
import { benchTerminal } from './terminal/terminal.ts'
import { benchWebhooks } from './webhooks.ts'

const { values, positionals } = parseArgs({
  options: {
    agents: { type: 'string' },
    node: { type: 'string', multiple: true, default: [] },
    file: { type: 'string' },
  },
  allowPositionals: true,
})

/** Groups with servers on PostgreSQL; skipped if it is missing. */
const sharedGroups: Record<string, () => Promise<Row[]>> = {
  spread: benchSpread,
  'shared-output': benchSharedOutput,
  'shared-heartbeats': benchSharedHeartbeats,
  'shared-keys': benchSharedKeys,
  takeover: benchTakeover,
  'shared-sending': benchSending,
}
const sharedFleetGroups: Record<string, (fleet: Fleet) => Promise<Row[]>> = {
  'shared-execution': benchSharedExecution,
}

/** Groups in the order of the table. */
const groups: Record<string, () => Promise<Row[]>> = {
  store: benchStore,
  history: benchHistory,
  rest: benchRest,
  output: benchOutput,
  folding: benchFolding,
  scale: benchScale,
  terminal: benchTerminal,
  loop: benchLoop,
  herd: benchHerd,
  backup: benchBackup,
  schedules: benchSchedules,
  webhooks: benchWebhooks,
  files: benchFiles,
  ...sharedGroups,
}
const nodes = [process.execPath, ...values.node]
const { file } = values
const fleetGroups: Record<string, (fleet: Fleet) => Promise<Row[]>> = {
  memory: benchMemory,
  startup: (fleet) => benchStartup(fleet, nodes),
  ...(file !== undefined && { file: (fleet: Fleet) => benchFile(fleet, resolve(file), nodes) }),
  execution: benchExecution,
  cancel: benchCancel,
  ...sharedFleetGroups,
}

const names = [...Object.keys(groups), ...Object.keys(fleetGroups)]
for (const name of positionals)
  if (!names.includes(name)) throw new Error(`no group ${name}; there are ${names.join(', ')}`)
const shared = [...Object.keys(sharedGroups), ...Object.keys(sharedFleetGroups)]
const isWanted = (name: string) =>
  (positionals.length === 0 || positionals.includes(name)) && (programs !== null || !shared.includes(name))

function print(rows: readonly Row[]): void {
  const shown = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))
  const table = rows.map((row) => [
    row.name,
    shown(row.ours),
    shown(row.baseline),
    row.unit,
    `${row.ratio.toFixed(2)} ×`,
    row.spread ?? '',
    row.goal,
    row.met === null ? 'not judged' : row.met ? 'met' : 'MISSED',
  ])
  const all = [['measure', 'ours', 'baseline', 'unit', 'ratio', 'spread', 'goal', ''], ...table]
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
if (programs === null)
  process.stderr.write(`PostgreSQL is missing (Debian: postgresql): ${shared.join(', ')} are not measured\n`)
for (const [name, bench] of Object.entries(groups)) {
  if (!isWanted(name)) continue
  said(name)
  rows.push(...(await bench()))
}
const onFleet = Object.keys(fleetGroups).filter((name) => isWanted(name))
if (onFleet.length > 0) {
  // The command line alone needs hosts to list and one to run on; a hundred agents take minutes to start.
  const usual = onFleet.every((name) => name === 'startup' || name === 'file') ? 5 : 100
  const agents = Number(values.agents ?? usual)
  said(`a fleet of ${agents} agents`)
  const fleet = await startFleet(agents)
  try {
    for (const [name, bench] of Object.entries(fleetGroups)) {
      if (!isWanted(name)) continue
      said(name)
      rows.push(...(await bench(fleet)))
    }
  } finally {
    await fleet.stop()
  }
}
print(rows)
