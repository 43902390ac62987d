import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { createLog } from '../../../src/disk/log.ts'
import { readStoreAddress } from '../../../src/server/storage/postgres/connection/address.ts'
import { createDatabase } from '../../../src/server/storage/postgres/connection/database.ts'
import { settleTime } from '../../../src/server/storage/postgres/ownership/lives.ts'
import { type Ending, temporaryDirectory } from '../agents/agent.ts'
import { followThrough, type Heard } from '../chaos/follower.ts'
import { faultVariables } from '../faults/fault.ts'
import { askedFile, faultOf, type ServerPoint, type Site } from '../faults/server-windows.ts'
import type { ServerProcess } from '../servers/server-process.ts'
import { until } from '../until.ts'
import { startCluster } from './cluster.ts'

/** The server with the links of agents before the kill: the killed one or another one. */
export type Linked = 'here' | 'elsewhere'

/** Three servers, of which the first one is killed repeatedly; the others live as long as the test file. */
export interface Lane {
  site(t: ExecutionContext, point: ServerPoint, linked: Linked): Promise<Killed>
}

export interface Killed {
  readonly site: Site
  /** Entries of the task, followed at a server that stays up. */
  readonly followed: () => Promise<Heard>
  /** Milliseconds from the kill until others own its tasks; null if it owned none. */
  readonly takeover: () => Promise<number | null>
}

const name = 'server1'

export async function openLane(ending: Ending): Promise<Lane> {
  const { servers, front, store } = await startCluster(ending, { balance: 'first' })
  const [a, b] = servers as readonly [ServerProcess, ServerProcess, ...ServerProcess[]]
  const database = createDatabase(readStoreAddress(store, undefined), 'test', createLog('ERROR'))
  ending.teardown(() => database.close())
  // A server that just joined does not judge others by locks.
  await delay(settleTime + 500)
  const countOf = async (condition: string) =>
    (await database.ask('api', `select from rsm.task_owners o where server = $1 and ${condition}`, [name]))
      .length
  const owned = () => countOf('exists (select from rsm.executions e where e.task_id = o.task_id)')

  /** Whether the balancer sends requests to the first server again. */
  const first = async () => {
    // A kept-alive connection stays with its server.
    const { body } = await front.api('GET', '/api/servers', undefined, { connection: 'close' })
    return body.data.content.some((one: { name: string; isThis: boolean }) => one.isThis && one.name === name)
  }

  /** Resolves with the milliseconds until others own its tasks; null if it owns none. */
  async function takenOver(): Promise<number | null> {
    const began = performance.now()
    if ((await owned()) === 0) return null
    while ((await owned()) > 0) await delay(20)
    return performance.now() - began
  }

  return {
    async site(t, point, linked) {
      const traces = await temporaryDirectory(t)
      const gate = join(traces, 'gate')
      const { fault, hold } = faultOf(point, gate, 'server.sent.after')
      await a.kill()
      await a.start(faultVariables(fault, hold, askedFile(gate)))
      await until('it owns no tasks of its previous life', async () => (await countOf('true')) === 0)
      await until('the balancer uses it again', first)
      const heard: Heard = { entries: [], resumed: 0 }
      let following: Promise<unknown> = Promise.resolve()
      let taking: Promise<number | null> = Promise.resolve(null)
      const site: Site = {
        t,
        server: front,
        links: linked === 'here' ? front : b,
        faulty: a,
        async crashed() {
          await a.crashed()
          taking = takenOver()
        },
        asked(taskId) {
          following = followThrough(b, taskId, heard)
        },
        traces,
        gate,
      }
      return {
        site,
        async followed() {
          await following
          return heard
        },
        takeover: () => taking,
      }
    },
  }
}
