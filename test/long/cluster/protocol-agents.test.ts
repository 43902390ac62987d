import { setTimeout as delay } from 'node:timers/promises'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { Random } from '../../helpers/chaos/random.ts'
import { type Reached, shortOf } from '../../helpers/chaos/verdict.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { journalAgents } from '../../helpers/cluster/journal-agent.ts'
import { faultsOf, sayAll, startedTwice } from '../../helpers/cluster/sayings.ts'
import { clusterTrouble, leastTrouble, nothingDone, troubleOf } from '../../helpers/cluster/trouble.ts'

const wantedExecutions = Number(process.env['RSM_CLUSTER_EXECUTIONS'] ?? 2_000)
const wantedKills = Number(process.env['RSM_CLUSTER_KILLS'] ?? 20)
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)
const agentCount = 100
/** Maximum in milliseconds, even on a slow machine. */
const longest = 8 * 60_000
const together = 4

test('F22 protocol agents start nothing twice and deliver every byte once while three servers are killed', async (t) => {
  t.timeout(590_000)
  t.log(`RSM_SEED=${seed} repeats this run`)
  const cluster = await startCluster(t)
  const { front } = cluster
  const random = new Random(seed)
  const agents = await journalAgents(t, front, { count: agentCount, pace: 40 })
  const hostIds = agents.map(({ identity }) => identity.hostId)
  const before = await soundAudit(t, front)
  const done = nothingDone()
  const trouble = clusterTrouble(cluster, random, done)
  const faults: string[] = []
  let begun = 0
  let executions = 0
  let resumed = 0
  const framesOf = (kind: 'frames' | 'dropped') => agents.reduce((sum, agent) => sum + agent[kind], 0)
  const reached = (): Reached => ({
    ...troubleOf(done),
    executions,
    'starts at agents': framesOf('frames') - framesOf('dropped'),
    'resumed followers': resumed,
  })
  const minima = (): Reached => ({
    ...leastTrouble(done, wantedKills),
    executions: wantedExecutions,
    'starts at agents': wantedExecutions,
    'resumed followers': Math.max(1, Math.floor(wantedKills / 10)),
  })
  const began = performance.now()
  const isWanted = () => performance.now() - began < longest && shortOf(reached(), minima()).length > 0

  async function runOne(): Promise<void> {
    const saying = { pieces: random.between(0, 12), exitCode: random.pick([0, 0, 0, 3]) }
    const chosen = random.some(hostIds, random.between(5, 60))
    begun += 1
    const options = random.pick([
      {},
      {},
      { concurrency: 5 },
      { strategy: 'ROLLING', batchSize: '30%', maxFailures: '100%' },
    ])
    const said = await sayAll({ front, follower: front }, { saying, hostIds: chosen, options })
    faults.push(...faultsOf(said))
    executions += chosen.length
    resumed += said.heard.resumed
  }
  const working = Array.from({ length: together }, async () => {
    while (isWanted()) await runOne()
  })
  const breaking = (async () => {
    while (isWanted()) {
      await delay(random.between(0, 2000))
      await trouble()
    }
  })()
  await Promise.all([...working, breaking])
  t.log(
    `${executions} executions in ${begun} tasks, ${framesOf('frames')} frames, ${framesOf('dropped')} dropped by journals, ${resumed} streams resumed; ${JSON.stringify(done)}`,
  )
  for (const fault of faults) t.log(fault)
  t.deepEqual(faults, [], `seed ${seed}`)
  t.deepEqual(startedTwice(agents), [], `seed ${seed}`)
  t.deepEqual(shortOf(reached(), minima()), [], `seed ${seed}`)
  await soundAudit(t, front, before)
})
