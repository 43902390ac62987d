import { join } from 'node:path'
import { type Clock, systemClock } from '../../disk/clock.ts'
import { openDataDirectory } from '../../disk/data-directory.ts'
import { createLog, type LeveledLog } from '../../disk/log.ts'
import { type Clients, createClients } from '../access/client-address.ts'
import { createServerMetrics, type ServerMetrics } from '../metrics/metrics.ts'
import { createLocalFacts, type LocalFacts } from '../storage/local-facts.ts'
import type { Data, OpenData } from '../storage/ports/data.ts'
import { openTls, type Tls } from '../tls/tls.ts'
import type { ServerOptions } from './options.ts'

export interface Base {
  /** The data directory, whose lock is held until `close`. */
  path: string
  data: Data
  /** Null without TLS. */
  tls: Tls | null
  clients: Clients
  facts: LocalFacts
  metrics: ServerMetrics
  clock: Clock
  log: LeveledLog
  /** Flushes pending writes, then releases the lock of the directory. */
  close(): Promise<void>
}

export const urlOf = ({ tls }: Base, host: string, port: number): string =>
  `${tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`

/** Locks the data directory, reads keys and certificates, and opens the store. */
export async function openBase(options: ServerOptions, openData: OpenData): Promise<Base> {
  const { heartbeatInterval, warnAfter } = options
  const clients = createClients(options.trustedProxies ?? [])
  const log = createLog(options.logLevel)
  const facts = createLocalFacts()
  const metrics = createServerMetrics(facts)
  const directory = await openDataDirectory(options.dataDir)
  const { path } = directory
  try {
    const keysDirectory = options.keysDir ?? join(path, 'keys')
    const data = await openData(path, {
      heartbeatInterval,
      warnAfter,
      keysDirectory,
      newKeys: options.newKeys === true,
      metrics,
      clock: options.clock ?? systemClock,
      log,
      onFatal(error) {
        log.error({ err: error }, 'the storage can no longer be trusted; stopping at once')
        process.exit(1)
      },
    })
    const { host, tls: asked = {} } = options
    const tls = await data
      .exclusive(() => openTls(asked, { directory: keysDirectory, host, log }))
      .catch(async (error: unknown) => {
        await data.close()
        throw error
      })
    const close = async () => {
      await data.close()
      await directory.release()
    }
    return { path, data, tls, clients, facts, metrics, clock: data.clock, log, close }
  } catch (error) {
    await directory.release()
    throw error
  }
}
