import { startBareLoop } from './bare/loop.ts'
import type { Fleet } from './fleet/fleet.ts'
import { startPdsh } from './fleet/pdsh.ts'
import { type BenchServer, binary } from './fleet/server.ts'
import { inTurn, ratioRow, wholeProcess } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 7
const pdshRounds = 3

/** Milliseconds from the POST of `true` for the hosts of a selector, all by default, to its final response. */
export async function untilFinal(fleet: BenchServer, selector = '@*'): Promise<number> {
  const start = performance.now()
  const task = await fleet.call('POST', '/api/tasks', {
    script: { content: 'true' },
    target: { selector },
    async: false,
  })
  if (task['status'] !== 'SUCCESS') throw new Error(`the task ended as ${String(task['status'])}`)
  return performance.now() - start
}

/** `true` on all agents: the way through the server, and the whole command. */
export async function benchExecution(fleet: Fleet): Promise<Row[]> {
  const size = fleet.agents.length
  const rows: Row[] = []
  const bare = await startBareLoop(size)
  try {
    const measured = await inTurn(
      rounds,
      () => untilFinal(fleet),
      () => bare.run('true'),
    )
    rows.push(ratioRow(`POST to final, ${size} agents, vs a bare ws loop`, 'ms', measured, { atMost: 1.5 }))
  } finally {
    await bare.stop()
  }
  const pdsh = await startPdsh(size)
  if (!pdsh) {
    process.stderr.write('pdsh or sshd is missing: rsm exec is not compared with pdsh\n')
    return rows
  }
  try {
    const env = { ...process.env, RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
    const exec = () => wholeProcess(process.execPath, [binary, 'exec', '--all', '-y', '--', 'true'], { env })
    const measured = await inTurn(pdshRounds, exec, () => pdsh.run('true'))
    rows.push(ratioRow(`rsm exec true on ${size} agents, vs pdsh`, 'ms', measured, { atMost: 0.2 }))
  } finally {
    await pdsh.stop()
  }
  return rows
}
