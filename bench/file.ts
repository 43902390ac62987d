import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Fleet, startAgent, untilLinked, writeToken } from './fleet/fleet.ts'
import { binary, ended } from './fleet/server.ts'
import { inTurn, median, ratioRow, wholeProcess } from './measure.ts'
import type { Row } from './row.ts'
import { bareGet } from './startup.ts'

const rounds = 15
const agentsOfEach = 3
/** Milliseconds until a linked agent is idle. */
const settle = 30_000

const versionOf = (node: string) => execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()

/** The Node among these whose version the executable contains. */
function nodeWithin(file: string, nodes: readonly string[]): string {
  const said = execFileSync(file, ['--version'], { encoding: 'utf8' })
  const [, version = ''] = /node-(v\S+)/.exec(said) ?? []
  const found = nodes.find((node) => versionOf(node) === version)
  if (found === undefined)
    throw new Error(`${file} contains Node ${version}: name that Node with --node PATH`)
  return found
}

/** Megabytes of memory that a process does not share. */
function privateDirtyMB(pid: number | undefined): number {
  const text = readFileSync(`/proc/${pid ?? 'self'}/smaps_rollup`, 'utf8')
  return Number(/^Private_Dirty:\s+(\d+)/m.exec(text)?.[1]) / 1024
}

/** Idle agents of the executable vs agents of the checkout on the same Node. */
async function benchAgents(fleet: Fleet, file: string, node: string): Promise<Row> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-file-'))
  const tokenFile = await writeToken(fleet, 2 * agentsOfEach, directory)
  const start = (kind: string, words: readonly string[]) =>
    Array.from({ length: agentsOfEach }, (_, n) =>
      startAgent(words, fleet, { hostname: `${kind}${n}`, tokenFile, directory }),
    )
  const [ours, baseline] = [start('file', [file]), start('checkout', [node, binary])]
  const all = [...ours, ...baseline]
  try {
    await untilLinked(fleet, fleet.agents.length + all.length)
    await setTimeout(settle)
    const [mine = [], theirs = []] = [ours, baseline].map((agents) =>
      agents.map(({ pid }) => privateDirtyMB(pid)),
    )
    const ratios = mine.map((each, n) => each / (theirs[n] ?? Number.NaN)).sort((a, b) => a - b)
    const measured = { ours: median(mine), baseline: median(theirs), ratios }
    return ratioRow("private dirty memory of the file's idle agent, vs the checkout's", 'MB', measured, {
      atMost: 1,
    })
  } finally {
    for (const child of all) child.kill('SIGKILL')
    await Promise.all(all.map((child) => ended(child)))
    await rm(directory, { recursive: true, force: true })
  }
}

/** The single executable vs the Node that it contains: times of whole commands, and memory of an agent. */
export async function benchFile(fleet: Fleet, file: string, nodes: readonly string[]): Promise<Row[]> {
  const node = nodeWithin(file, nodes)
  const home = await mkdtemp(join(tmpdir(), 'rsm-bench-home-'))
  const env = { ...process.env, HOME: home, XDG_CACHE_HOME: '', RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
  const rsm = (...argv: string[]) => wholeProcess(file, argv, { env })
  try {
    const version = await inTurn(
      rounds,
      () => rsm('--version'),
      () => wholeProcess(node, ['-e', '0']),
    )
    const list = await inTurn(
      rounds,
      () => rsm('hosts', 'list'),
      () => wholeProcess(node, ['-e', bareGet, fleet.url, fleet.token]),
    )
    return [
      ratioRow('rsm --version of the file, vs node -e 0', 'ms', version, { atMost: 1.2 }),
      ratioRow('rsm hosts list of the file, vs a bare GET', 'ms', list, { atMost: 2 }),
      await benchAgents(fleet, file, node),
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}
