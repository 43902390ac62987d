import { setTimeout as delay } from 'node:timers/promises'
import { Random } from '../helpers/chaos/random.ts'
import { startCluster, clusterTest as test } from '../helpers/cluster/cluster.ts'
import { journalAgents } from '../helpers/cluster/journal-agent.ts'
import { faultsOf, sayAll, startedTwice } from '../helpers/cluster/sayings.ts'
import { cameToFaultPoints, clusterTrouble, nothingDone } from '../helpers/cluster/trouble.ts'

const wantedExecutions = Number(process.env['RSM_CLUSTER_EXECUTIONS'] ?? 20_000)
const wantedKills = Number(process.env['RSM_CLUSTER_KILLS'] ?? 200)
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)
const agentCount = 100
const together = 4

test('protocol agents that link again at once, three servers that are killed: no start twice, every byte once', async (t) => {
  t.timeout(2_400_000)
  t.log(`RSM_SEED=${seed} takes this one again`)
  const cluster = await startCluster(t)
  const { front } = cluster
  const random = new Random(seed)
  const agents = await journalAgents(t, front, { count: agentCount, pace: 40 })
  const hostIds = agents.map(({ identity }) => identity.hostId)
  const done = nothingDone()
  const faults: string[] = []
  let begun = 0
  let executions = 0
  const isWanted = () => executions < wantedExecutions || done.kills < wantedKills

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
  }
  const working = Array.from({ length: together }, async () => {
    while (isWanted()) await runOne()
  })
  const breaking = (async () => {
    while (isWanted()) {
      await delay(random.between(0, 2000))
      await clusterTrouble(cluster, random, done)
    }
  })()
  await Promise.all([...working, breaking])
  const frames = agents.reduce((sum, agent) => sum + agent.frames, 0)
  const dropped = agents.reduce((sum, agent) => sum + agent.dropped, 0)
  t.log(
    `${executions} executions in ${begun} tasks, ${frames} frames, ${dropped} dropped by journals; ${JSON.stringify(done)}`,
  )
  for (const fault of faults) t.log(fault)
  t.deepEqual(faults, [], `seed ${seed}`)
  t.true(
    cameToFaultPoints(done),
    `seed ${seed}: servers do not come to their fault points: ${done.missed.join(', ')}`,
  )
  t.deepEqual(startedTwice(agents), [], `seed ${seed}`)
})
