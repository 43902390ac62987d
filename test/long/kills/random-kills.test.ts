import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { chaosFleet } from '../../helpers/chaos/fleet.ts'
import { ChaosLoad } from '../../helpers/chaos/load.ts'
import { Random } from '../../helpers/chaos/random.ts'
import { trouble } from '../../helpers/chaos/trouble.ts'
import { verdict } from '../../helpers/chaos/verdict.ts'
import { until } from '../../helpers/until.ts'

const rounds = Number(process.env['RSM_ROUNDS'] ?? 50)
const executionsPerRound = 4
const seed = Number(process.env['RSM_SEED'] ?? Date.now() % 1_000_000_000)

test('F07 F08 F10 F11 every result is true after random kills of server, agents and links', async (t) => {
  t.timeout(590_000)
  t.log(`RSM_SEED=${seed} repeats this run`)
  const fleet = await chaosFleet(t, 5)
  const starts = join(await temporaryDirectory(t), 'starts')
  await writeFile(starts, '')
  const hostIds = fleet.agents.map(({ hostId }) => hostId)
  const load = new ChaosLoad(fleet.server, new Random(seed), hostIds, starts)
  const random = new Random(seed + 1)
  const inFlight: number[] = []
  const told: string[] = []
  const began = performance.now()
  for (let round = 1; round <= rounds; round += 1) {
    while (load.executions < round * executionsPerRound) load.begin()
    await delay(random.between(0, 1_000))
    let alive = 0
    // On a slow machine no script may have started yet, or all may have ended: wait for work first.
    await until('a script runs', async () => {
      if (load.running === 0) load.begin()
      alive = await fleet.scriptsAlive()
      return alive > 0
    })
    inFlight.push(alive)
    const at = Math.round(performance.now() - began)
    told.push(`${at} ms, ${alive} scripts alive: ${await trouble(fleet, random)}`)
  }
  const broke = Math.round((performance.now() - began) / 1000)
  await Promise.race([
    load.ended(),
    delay(180_000, undefined, { ref: false }).then(() => {
      const left = load.tasks.filter(({ ended }) => !ended)
      const names = left.map((task) => `${task.taskId} ${task.script.name} ${task.options.strategy}`)
      throw new Error(`seed ${seed}: not ended: ${names.join('; ')}\n${told.join('\n')}`)
    }),
  ])
  const lines = (await readFile(starts, 'utf8')).split('\n')
  const directories = new Map(fleet.agents.map(({ hostId, dataDir }) => [hostId, dataDir]))
  const startsOf = (taskId: string, hostId: number) => {
    const path = join(directories.get(hostId) ?? '', 'executions', taskId, 'run/script')
    return lines.filter((line) => line === path).length
  }
  const faults = load.tasks.flatMap((task) => verdict(task, startsOf))
  const resumed = load.tasks.reduce((sum, { heard }) => sum + heard.resumed, 0)
  const bytes = load.tasks
    .flatMap(({ heard }) => heard.entries)
    .reduce((sum, { data }) => sum + data.length, 0)
  t.log(
    `${load.executions} executions in ${load.tasks.length} tasks, ${rounds} rounds in ${broke} s, all ended after ${Math.round((performance.now() - began) / 1000)} s`,
  )
  t.log(
    `scripts in flight at each round: ${inFlight.join(' ')}; ${(bytes / 1e6).toFixed(1)} MB of output received; ${resumed} streams resumed`,
  )
  for (const fault of faults) t.log(fault)
  t.deepEqual(faults, [], `seed ${seed}\n${told.join('\n')}`)
  t.is(await fleet.scriptsAlive(), 0)
})
