import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { cleanEnv, runRsm } from '../fixtures/rsm.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'
import { chaosAgents } from '../helpers/chaos/fleet.ts'
import { ChaosLoad } from '../helpers/chaos/load.ts'
import { Random } from '../helpers/chaos/random.ts'
import { TerminalLoad } from '../helpers/chaos/terminals.ts'
import { verdict } from '../helpers/chaos/verdict.ts'
import { startCluster, clusterTest as test } from '../helpers/cluster/cluster.ts'
import { cameToFaultPoints, clusterTrouble, nothingDone } from '../helpers/cluster/trouble.ts'

const minutes = Number(process.env['RSM_CLUSTER_MINUTES'] ?? 10)
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)
const agentCount = 20
/** Milliseconds; with what each trouble takes itself, servers are killed at least 40 times in ten minutes. */
const between = 6_000
/** Tasks, and terminals, that run at any time. */
const together = 6
const terminalsTogether = 3

test('20 real agents behind a balancer, three servers that are killed: every result is what happened', async (t) => {
  t.timeout(2_400_000)
  t.log(`RSM_SEED=${seed} takes this one again`)
  const cluster = await startCluster(t)
  const fleet = await chaosAgents(t, cluster.front, agentCount)
  const starts = join(await temporaryDirectory(t), 'starts')
  await writeFile(starts, '')
  const load = new ChaosLoad(
    cluster.front,
    new Random(seed),
    fleet.agents.map(({ hostId }) => hostId),
    starts,
  )
  const terminals = new TerminalLoad(t, cluster.front)
  const random = new Random(seed + 1)
  const done = nothingDone()
  const began = performance.now()
  const isOver = () => performance.now() - began > minutes * 60_000
  const working = (async () => {
    while (!isOver()) {
      while (load.running < together) load.begin()
      await delay(250)
    }
  })()
  const hostnames = fleet.agents.map(({ hostname }) => hostname)
  const showing = Array.from({ length: terminalsTogether }, (_, at) =>
    terminals.run(new Random(seed + 2 + at), hostnames, isOver),
  )
  while (!isOver()) {
    await delay(random.between(0, between))
    await clusterTrouble(cluster, random, done)
  }
  await working
  const broke = Math.round((performance.now() - began) / 1000)
  await Promise.race([
    load.ended(),
    delay(5 * 60_000, undefined, { ref: false }).then(() => {
      const left = load.tasks.filter(({ ended }) => !ended)
      const names = left.map((task) => `${task.taskId} ${task.script.name} ${task.options.strategy}`)
      throw new Error(`seed ${seed}: not ended: ${names.join('; ')}`)
    }),
  ])
  await Promise.all(showing)
  const lines = (await readFile(starts, 'utf8')).split('\n')
  const directories = new Map(fleet.agents.map(({ hostId, dataDir }) => [hostId, dataDir]))
  const startsOf = (taskId: string, hostId: number) => {
    const path = join(directories.get(hostId) ?? '', 'executions', taskId, 'script')
    return lines.filter((line) => line === path).length
  }
  const faults = [...load.tasks.flatMap((task) => verdict(task, startsOf)), ...terminals.faults]
  const resumed = load.tasks.reduce((sum, { heard }) => sum + heard.resumed, 0)
  t.log(
    `${load.executions} executions in ${load.tasks.length} tasks over ${broke} s, ${load.retries} retries, ${resumed} streams taken up again, ${JSON.stringify(done)}`,
  )
  t.log(
    `${terminals.sessions} terminals, ${terminals.reattached} times attached again, ${terminals.unopened} not opened`,
  )
  for (const fault of faults) t.log(fault)
  t.deepEqual(faults, [], `seed ${seed}`)
  t.true(
    cameToFaultPoints(done),
    `seed ${seed}: servers do not come to their fault points: ${done.missed.join(', ')}`,
  )
  t.is(await fleet.scriptsAlive(), 0)
  const { url, token } = cluster.front
  const home = await temporaryDirectory(t)
  const audit = await runRsm(['audit', 'verify'], cleanEnv(home, { RSM_URL: url, RSM_TOKEN: token }))
  t.is(audit.exit, 0, audit.stderr)
  t.log(audit.stderr.trim())
})
