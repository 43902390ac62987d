import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { chaosAgents } from '../../helpers/chaos/fleet.ts'
import { ChaosLoad, type ChaosTask } from '../../helpers/chaos/load.ts'
import { Random } from '../../helpers/chaos/random.ts'
import { TerminalLoad } from '../../helpers/chaos/terminals.ts'
import { type Reached, shortOf, verdict } from '../../helpers/chaos/verdict.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import {
  clusterTrouble,
  type Done,
  leastTrouble,
  nothingDone,
  troubleOf,
} from '../../helpers/cluster/trouble.ts'

const minutes = Number(process.env['RSM_CLUSTER_MINUTES'] ?? 3)
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)
const agentCount = 20
/** Milliseconds. */
const between = 6_000
/** Factor by which a run may take longer to reach its minimum on a slow machine. */
const patience = 2
/** Tasks and terminals that run at any time. */
const together = 6
const terminalsTogether = 3

/** Minimum that a run of this many minutes must reach. */
const least = (done: Done): Reached => ({
  ...leastTrouble(done, Math.ceil(4 * minutes)),
  executions: Math.ceil(20 * minutes),
  'tasks with followed output': Math.ceil(2 * minutes),
  'resumed followers': Math.ceil(minutes),
  'opened terminals': Math.ceil(minutes),
  'reattached terminals': 1,
  'tasks with strategy PARALLEL': 1,
  'tasks with strategy SEQUENTIAL': 1,
  'tasks with strategy ROLLING': 1,
  'cancelled tasks': 1,
  retries: 1,
})

const reachedBy = (load: ChaosLoad, terminals: TerminalLoad, done: Done): Reached => {
  const tasks = (fits: (task: ChaosTask) => boolean) => load.tasks.filter(fits).length
  const withStrategy = (strategy: string) => tasks(({ options }) => options.strategy === strategy)
  return {
    ...troubleOf(done),
    executions: load.executions,
    'tasks with followed output': tasks(({ heard }) => heard.entries.length > 0),
    'resumed followers': load.resumed,
    'opened terminals': terminals.sessions,
    'reattached terminals': terminals.reattached,
    'tasks with strategy PARALLEL': withStrategy('PARALLEL'),
    'tasks with strategy SEQUENTIAL': withStrategy('SEQUENTIAL'),
    'tasks with strategy ROLLING': withStrategy('ROLLING'),
    'cancelled tasks': tasks(({ script }) => script.isCancelled),
    retries: load.retries,
  }
}

test('F22 20 real agents behind a balancer report every result correctly while three servers are killed', async (t) => {
  t.timeout(590_000)
  t.log(`RSM_SEED=${seed} repeats this run`)
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
  const before = await soundAudit(t, cluster.front)
  const done = nothingDone()
  const trouble = clusterTrouble(cluster, random, done)
  const missing = () => shortOf(reachedBy(load, terminals, done), least(done))
  const began = performance.now()
  const isOver = () => {
    const runs = (performance.now() - began) / 60_000 / minutes
    return runs > patience || (runs > 1 && missing().length === 0)
  }
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
    await trouble()
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
    const path = join(directories.get(hostId) ?? '', 'executions', taskId, 'run/script')
    return lines.filter((line) => line === path).length
  }
  const faults = [...load.tasks.flatMap((task) => verdict(task, startsOf)), ...terminals.faults]
  t.log(
    `${load.executions} executions in ${load.tasks.length} tasks over ${broke} s, ${load.retries} retries, ${load.resumed} streams resumed, ${JSON.stringify(done)}`,
  )
  t.log(
    `${terminals.sessions} terminals, ${terminals.reattached} reattached, ${terminals.unopened} not opened`,
  )
  for (const fault of faults) t.log(fault)
  t.deepEqual(faults, [], `seed ${seed}`)
  t.deepEqual(missing(), [], `seed ${seed}`)
  t.is(await fleet.scriptsAlive(), 0)
  await soundAudit(t, cluster.front, before)
})
