import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { soundAudit } from '../../helpers/audit/sound-audit.ts'
import { followThrough, type Heard } from '../../helpers/chaos/follower.ts'
import { Random } from '../../helpers/chaos/random.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'
import { type JournalAgent, journalAgents } from '../../helpers/cluster/journal-agent.ts'
import { faultsOf, sayAll, startedTwice } from '../../helpers/cluster/sayings.ts'
import { countStart, startsIn } from '../../helpers/servers/linked-pair.ts'

const crashes = 10
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)

const openOf = (agents: readonly JournalAgent[]): number => agents.reduce((sum, agent) => sum + agent.open, 0)

/** A script writes at least 5 pieces, 30 ms apart on average, so polling every 10 ms sees one running. */
async function untilScriptsRun(agents: readonly JournalAgent[]): Promise<void> {
  const givenUpAt = Date.now() + 30_000
  while (openOf(agents) === 0 && Date.now() < givenUpAt) await delay(10)
}

test('F23 PostgreSQL crashes ten times during tasks: nothing starts twice, output reaches a follower once, results are correct', async (t) => {
  t.timeout(300_000)
  t.log(`RSM_SEED=${seed} repeats this run`)
  const random = new Random(seed)
  const { servers, postgres, front } = await startCluster(t)
  const [, b] = servers
  if (!b) throw new Error('no second server')
  const agents = await journalAgents(t, front, { count: 12, pace: 60 })
  const hostIds = agents.map(({ identity }) => identity.hostId)
  // One script that runs through all crashes.
  const traces = await temporaryDirectory(t)
  const gate = join(traces, 'gate')
  const { hostId } = await realAgent(t, front, { hostname: 'real' })
  const content = `${countStart(traces)}; n=0; until [ -e ${gate} ] || [ ! -d ${traces} ]; do n=$((n+1)); echo $n; sleep 0.05; done; echo $n >${gate}; exit 3`
  const taskId = await startTask(front, [hostId], { script: { content }, queueSeconds: 120 })
  const heard: Heard = { entries: [], resumed: 0 }
  const ending = followThrough(b, taskId, heard)

  const faults: string[] = []
  const inFlight: number[] = []
  const saying = () => ({ pieces: random.between(5, 30), exitCode: random.pick([0, 3]) })
  for (let crash = 1; crash <= crashes; crash += 1) {
    const first = saying()
    const tasks = [first, saying()].map((its) => sayAll({ front, follower: b }, { saying: its, hostIds }))
    // Every other crash comes at a random time, also while tasks are accepted; the rest while
    // scripts write output.
    const delayed = random.between(100, 900)
    if (crash % 2 === 0) await delay(delayed)
    else await untilScriptsRun(agents)
    inFlight.push(openOf(agents))
    postgres.stop('immediate')
    await delay(random.between(0, 1000))
    postgres.start()
    for (const said of await Promise.all(tasks)) faults.push(...faultsOf(said))
  }
  writeFileSync(gate, '')
  const ended = await ending
  t.log(
    `executions not acknowledged at each crash: ${inFlight.join(' ')}; the long task was followed over ${heard.resumed + 1} streams`,
  )
  t.true(inFlight.filter((count) => count > 0).length >= crashes / 2, 'crashes came during tasks')
  t.deepEqual(faults, [], `seed ${seed}`)
  t.deepEqual(startedTwice(agents), [])
  t.like(ended.results[0], { status: 'FAILED', exitCode: 3, outputComplete: true })
  t.is(await startsIn(traces), 1)
  const count = Number(readFileSync(gate, 'utf8'))
  const lines = Array.from({ length: count }, (_, at) => `${at + 1}\n`)
  t.is(heard.entries.map(({ data }) => data).join(''), lines.join(''))
  t.truthy(await soundAudit(t, front))
})
