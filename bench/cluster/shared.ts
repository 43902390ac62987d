import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '../../test/helpers/servers/postgres-instances.ts'
import type { Servers } from '../fleet/fleet.ts'
import { patiently } from '../fleet/patiently.ts'
import { type BenchServer, startServer } from '../fleet/server.ts'
import { cpuOf, cpuOfPostgres } from './usage.ts'

/** As on a dedicated machine: every commit waits for the disk. */
const settings = { fsync: 'on', shared_buffers: '1GB', max_wal_size: '4GB' }

/** Seconds of processor time. */
export interface Used {
  readonly servers: number
  readonly postgres: number
}

/** Servers of one PostgreSQL. */
export interface Shared extends Servers {
  readonly postgres: Postgres
  readonly store: string
  /** Kills the server with this index, and waits for its end. */
  kill(at: number): Promise<void>
  /** Starts the server again, at its address. */
  startAgain(at: number): Promise<BenchServer>
  /** Processor time since the start, including killed servers. */
  used: () => Used
}

/** `more`: additional options of each server. */
export async function startShared(size: number, more: readonly string[] = []): Promise<Shared> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-shared-'))
  const ends: (() => void)[] = []
  const servers: BenchServer[] = []
  async function stop(): Promise<void> {
    await Promise.all(servers.map((server) => server.stop()))
    for (const end of ends.toReversed()) end()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const postgres = await startPostgres((end) => ends.push(end), settings)
    const store = await postgres.database()
    const start = (at: number, port = 0) => {
      const keys = ['--keys', join(directory, 'keys')]
      const which = ['--store', store, ...keys, '--server-name', `server${at + 1}`, ...more]
      return startServer(join(directory, `data${at}`), 'ERROR', port, which)
    }
    const serverAt = (at: number) => {
      const server = servers[at]
      if (!server) throw new Error(`no server ${at}`)
      return server
    }
    const cpuOfServer = ({ child }: BenchServer) => cpuOf(child.pid ?? 0)
    let usedByKilled = 0
    for (let at = 0; at < size; at++) servers.push(await start(at))
    return {
      postgres,
      store,
      servers,
      async kill(at) {
        const server = serverAt(at)
        usedByKilled += cpuOfServer(server)
        await server.stop()
      },
      async startAgain(at) {
        const port = Number(new URL(serverAt(at).url).port)
        const server = await patiently(() => start(at, port))
        servers[at] = server
        return server
      },
      used: () => ({
        servers: servers.reduce((sum, server) => sum + cpuOfServer(server), usedByKilled),
        postgres: cpuOfPostgres(postgres.dataDirectory),
      }),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
