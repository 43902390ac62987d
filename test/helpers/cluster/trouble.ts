import { setTimeout as delay } from 'node:timers/promises'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import type { Random } from '../chaos/random.ts'
import type { Reached } from '../chaos/verdict.ts'
import { type Fault, faultVariables } from '../faults/fault.ts'
import type { ServerProcess } from '../servers/server-process.ts'
import type { Cluster } from './cluster.ts'

/** Highest count at which a server ends at a point: 20 real agents make it reach the point that often within seconds. */
const ofLinks = 8
const ofTasks = 2

/** Points that each server with links and tasks of its own reaches. */
const points: readonly (readonly [FaultPoint, number])[] = [
  ['server.created.before', ofTasks],
  ['server.created.after', ofTasks],
  ['server.turn.before', ofTasks],
  ['server.turn.after', ofTasks],
  ['server.sent.before', ofLinks],
  ['server.sent.after', ofLinks],
  ['server.frame.after', ofLinks],
  ['server.output.before', ofLinks],
  ['server.output.written', ofLinks],
  ['server.output.after', ofLinks],
  ['server.settled.before', ofLinks],
  ['server.settled.after', ofLinks],
  ['server.archived.before', ofTasks],
  ['server.final.before', ofTasks],
  ['server.final.after', ofTasks],
]

/** Milliseconds to reach the point, once all links have moved. */
const patience = 10_000

/** Trouble made in a cluster so far. */
export interface Done {
  kills: number
  /** Lives started with a fault point, and the points that they did not reach. */
  faultLives: number
  missed: string[]
  stops: number
  crashesOfPostgres: number
  handOvers: number
}

export const nothingDone = (): Done => ({
  kills: 0,
  faultLives: 0,
  missed: [],
  stops: 0,
  crashesOfPostgres: 0,
  handOvers: 0,
})

/** Milliseconds that a start may take while another server or PostgreSQL is down. */
const startTime = 30_000

async function startAgain(server: ServerProcess, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const until = performance.now() + startTime
  for (;;) {
    try {
      await server.start(env)
      return
    } catch (error) {
      // PostgreSQL may still be starting.
      if (performance.now() > until) throw error
      await delay(500)
    }
  }
}

async function killAndStart(server: ServerProcess, done: Done, away = 0): Promise<void> {
  await server.kill()
  done.kills += 1
  await delay(away)
  await startAgain(server)
}

const killOne = ({ servers }: Cluster, random: Random, done: Done): Promise<void> =>
  killAndStart(random.pick(servers), done, random.between(0, 1500))

/**
 * Runs a life that ends itself at a fault point, and then the next one. Links and connections move only if they break, so a new
 * server would have nothing to do: the others are killed too, one after the other.
 */
async function endAtPoint({ servers }: Cluster, random: Random, done: Done): Promise<void> {
  const server = random.pick(servers)
  const [point, most] = random.pick(points)
  const fault: Fault = `${point}@${random.between(1, most)}`
  await server.kill()
  done.kills += 1
  await startAgain(server, faultVariables(fault))
  const reached = server.crashed().then(
    () => true,
    () => false,
  )
  for (const other of servers) if (other !== server) await killAndStart(other, done)
  done.faultLives += 1
  if (!(await Promise.race([reached, delay(patience, false, { ref: false })]))) done.missed.push(fault)
  await killAndStart(server, done)
}

/** Suspends a server past its lease: the others take over its tasks, and it must notice. */
async function standStill({ servers }: Cluster, random: Random, done: Done): Promise<void> {
  const server = random.pick(servers)
  server.signal('SIGSTOP')
  await delay(random.between(11_000, 14_000))
  server.signal('SIGCONT')
  done.stops += 1
}

async function crashPostgres({ postgres }: Cluster, random: Random, done: Done): Promise<void> {
  postgres.stop('immediate')
  await delay(random.between(0, 2000))
  postgres.start()
  done.crashesOfPostgres += 1
}

async function handOver({ servers }: Cluster, random: Random, done: Done): Promise<void> {
  const server = random.pick(servers)
  await server.terminate()
  done.handOvers += 1
  await startAgain(server)
}

const kinds = [
  killOne,
  killOne,
  killOne,
  killOne,
  endAtPoint,
  endAtPoint,
  handOver,
  crashPostgres,
  standStill,
]

/**
 * Returns a function that makes one round of trouble; all servers are up again when it settles. Each kind comes once before any
 * repeats, so that even a short run has all of them.
 */
export function clusterTrouble(cluster: Cluster, random: Random, done: Done): () => Promise<void> {
  let left: typeof kinds = []
  return async () => {
    if (left.length === 0) left = random.some(kinds, kinds.length)
    await left.pop()?.(cluster, random, done)
  }
}

/** Trouble by the names of a verdict. Each kind must occur at least once, or the run proves nothing about it. */
export const troubleOf = ({
  kills,
  faultLives,
  missed,
  stops,
  crashesOfPostgres,
  handOvers,
}: Done): Reached => ({
  'kills of servers': kills,
  'lives that ended at a fault point': faultLives - missed.length,
  'servers suspended past their lease': stops,
  'crashes of PostgreSQL': crashesOfPostgres,
  'servers that handed over': handOvers,
})

/** Lower bounds: at least a quarter of the lives with a fault point end there; usually most do. */
export const leastTrouble = ({ faultLives }: Done, kills: number): Reached => ({
  'kills of servers': kills,
  'lives that ended at a fault point': Math.max(1, Math.floor(faultLives / 4)),
  'servers suspended past their lease': 1,
  'crashes of PostgreSQL': 1,
  'servers that handed over': 1,
})
