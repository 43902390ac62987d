import { type IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import type { ExecutionContext } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { type RunningServer, startServer } from '../../../src/server/main.ts'
import type { TlsOptions } from '../../../src/server/tls/tls.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { adminPassword, passwordCost } from './server.ts'

interface TlsServer {
  server: RunningServer
  url: string
  /** A GET by a client that trusts only `ca`. */
  readonly ask: (
    path: string,
    ca?: string,
  ) => Promise<{ status: number | undefined; headers: IncomingHttpHeaders }>
}

/** A real server that speaks TLS, on a data directory of its own. */
export async function startTlsServer(
  t: ExecutionContext,
  tls: TlsOptions,
  options: Partial<ServerOptions> = {},
): Promise<TlsServer> {
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    dataDir: temporaryDirectory(t),
    heartbeatInterval: 30,
    metricsInterval: 60,
    wsIdleTimeout: 300,
    adminPassword,
    insecureHttp: false,
    tls,
    logLevel: 'ERROR',
    passwordCost,
    ...options,
  })
  t.teardown(() => server.close())
  return {
    server,
    url: server.url,
    ask: (path, ca) =>
      new Promise((resolve, reject) => {
        const asking = request(new URL(path, server.url), {
          agent: false,
          ...(ca === undefined ? {} : { ca }),
        })
        asking.on('response', (response) => {
          response.resume()
          response.on('end', () => resolve({ status: response.statusCode, headers: response.headers }))
        })
        asking.on('error', reject)
        asking.end()
      }),
  }
}
