import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDirectory } from '../src/core/selector/directory.ts'
import { parseSelector } from '../src/core/selector/parse.ts'
import { resolveInSlices } from '../src/core/selector/resolve.ts'
import { type BenchServer, startServer } from './fleet/server.ts'
import { requestText, startLoad } from './load/load.ts'
import { inTurn, ratioRow } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 7
const milliseconds = 500
const connections = 4
const blanks = 15_500
const hosts = 10_000
const terms = 200
const longestStop = 50

/** A request for a file of the console by a client that has a different version of it. */
const fileRequest = (known: string) =>
  requestText('GET', '/console/icon.svg', '').replace('accept:', `if-none-match: ${known}\r\naccept:`)

async function blanksRow(server: BenchServer): Promise<Row> {
  const load = startLoad()
  const port = Number(new URL(server.url).port)
  const timeOf = (known: string) => async () => {
    const requests = [fileRequest(known)]
    const { perSecond } = await load.run({ port, requests, connections, milliseconds })
    return (1000 * connections) / perSecond
  }
  try {
    const measured = await inTurn(
      rounds,
      timeOf(`a${' '.repeat(blanks)}b`),
      timeOf(`a${'x'.repeat(blanks)}b`),
    )
    const name = `a request with ${blanks} blanks, vs one as long without`
    return ratioRow(name, 'ms', measured, { atMost: 2 })
  } finally {
    load.stop()
  }
}

const directory = () =>
  createDirectory(
    Array.from({ length: hosts }, (_, n) => ({
      id: n + 1,
      hostname: `web${n}.example.org`,
      tags: { env: n % 2 ? 'prod' : 'test' },
      status: 'ONLINE',
      reachable: true,
      noLink: false,
      os: 'linux',
      arch: 'x64',
    })),
    [],
  )

/** Milliseconds of processor time of a lookup, and its longest slice. */
function costOf(selector: string): { whole: number; longest: number } {
  const parsed = parseSelector(selector)
  const work = resolveInSlices(parsed, directory())
  const cost = { whole: 0, longest: 0 }
  for (let isDone = false; !isDone; ) {
    const start = process.cpuUsage()
    isDone = work.next().done === true
    const { user, system } = process.cpuUsage(start)
    const took = (user + system) / 1000
    cost.whole += took
    cost.longest = Math.max(cost.longest, took)
  }
  return cost
}

/** The longest slice vs the whole lookup, which would block the loop without slices. */
function selectorRow(): Row {
  const selectors = ['@*^', '@env:prod^', 'web1*,'].map((term) => `${term.repeat(terms - 1)}@*`)
  for (const selector of selectors) costOf(selector)
  const costs = selectors.map((selector) => costOf(selector))
  const longest = Math.max(...costs.map((cost) => cost.longest))
  const whole = Math.max(...costs.map(({ whole }) => whole))
  return {
    name: `the longest stop of the loop for a selector of ${terms} terms on ${hosts} hosts, vs all at once`,
    unit: 'ms',
    ours: longest,
    baseline: whole,
    ratio: longest / whole,
    goal: `≤ ${longestStop} ms`,
    met: longest <= longestStop,
  }
}

/** How long requests that anyone may send block the server's only event loop. */
export async function benchLoop(): Promise<Row[]> {
  const path = await mkdtemp(join(tmpdir(), 'rsm-bench-loop-'))
  const server = await startServer(path)
  try {
    return [await blanksRow(server), selectorRow()]
  } finally {
    await server.stop()
    await rm(path, { recursive: true, force: true })
  }
}
