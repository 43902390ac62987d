import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestFn } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { type Ending, temporaryDirectory } from '../agents/agent.ts'
import {
  type Postgres,
  postgresTest,
  type Standby,
  startPostgres,
  startStandby,
  urlOf,
} from '../servers/postgres.ts'
import { restCaller, type TestServer } from '../servers/server.ts'
import { type ServerProcess, startServerProcess } from '../servers/server-process.ts'
import { skipped } from '../skipped.ts'
import { type Balance, hasHaproxy, startBalancer } from './balancer.ts'

/** Skips tests if PostgreSQL or HAProxy is missing. */
export const clusterTest: TestFn = hasHaproxy
  ? postgresTest
  : skipped('HAProxy is missing: apt install haproxy')

/** Servers of one PostgreSQL behind a balancer. */
export interface Cluster {
  readonly postgres: Postgres
  readonly standby: Standby | null
  readonly store: string
  readonly servers: readonly ServerProcess[]
  /** The balancer: the address that clients and agents use. */
  readonly front: TestServer
}

interface Wanted {
  size?: number
  first?: Parameters<typeof startServerProcess>[1]
  balance?: Balance
  /** Options of each server. */
  options?: Partial<ServerOptions>
  /** Kind of the standby that the URL of the store names as second host; no standby by default. */
  standby?: 'synchronous' | 'asynchronous'
}

const unheld = () => Promise.reject(new Error('a balancer is neither stopped nor started again'))

export async function startCluster(
  t: Ending,
  { size = 3, first = {}, balance, options: more = {}, standby: kind }: Wanted = {},
): Promise<Cluster> {
  const postgres = await startPostgres((end) => t.teardown(end))
  const alone = await postgres.database()
  const standby = kind
    ? await startStandby((end) => t.teardown(end), postgres, { synchronous: kind === 'synchronous' })
    : null
  const store = standby ? urlOf([postgres, standby], new URL(alone).pathname.slice(1)) : alone
  const keysDir = join(await temporaryDirectory(t), `keys-${randomUUID()}`)
  await mkdir(keysDir, { mode: 0o700 })
  const servers: ServerProcess[] = []
  for (let n = 1; n <= size; n += 1) {
    const options = { ...more, store, keysDir, serverName: `server${n}`, trustedProxies: ['127.0.0.1'] }
    servers.push(await startServerProcess(t, { ...(n === 1 ? first : {}), options }))
  }
  const ports = servers.map(({ url }) => Number(new URL(url).port))
  const url = await startBalancer(t, ports, balance)
  const front: TestServer = {
    url,
    dataDir: '',
    token: servers[0]?.token ?? '',
    ...restCaller(() => front),
    restart: unheld,
    stop: unheld,
  }
  return { postgres, standby, store, servers, front }
}
