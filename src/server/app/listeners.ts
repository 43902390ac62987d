import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import type { ServerStatus } from '../../core/protocol/http/server.ts'
import { roomOf } from '../../disk/durable.ts'
import { serverVersion } from '../../disk/own-release.ts'
import { buildApp } from '../http/app.ts'
import { recordRequests } from '../http/audit/recorder.ts'
import { createListener, type Serving, serveCertificate, trackUnusedConnections } from '../http/listener.ts'
import { shedLinks } from '../listeners/closing.ts'
import { createWebSockets, type WebSockets } from '../listeners/web-sockets.ts'
import { type Control, serveControl } from '../operations/control/control.ts'
import { controlOperations } from '../operations/control/operations.ts'
import type { RouteDependencies } from '../routes/dependencies.ts'
import { registerRoutes } from '../routes/routes.ts'
import { createServices } from '../services/services.ts'
import { listServers, readinessOf, standingOf } from '../storage/membership.ts'
import { type Base, urlOf } from './base.ts'
import { endpointOf, explainListen, type ServerOptions } from './options.ts'
import type { Work } from './work.ts'

/** Connections that wait to be accepted; the kernel caps this at somaxconn. */
const listenBacklog = 8192
/** Milliseconds that open streams and requests have to end before their sockets are closed. */
const drainTime = 5000
const idleCheckInterval = 50

/** Entry points of a server: HTTP, WebSockets of agents and terminals, and the local control socket. */
export interface Listeners {
  readonly serving: Serving
  /** Handles a request without a connection, like Fastify's `inject`. */
  inject(request: InjectOptions): Promise<LightMyRequestResponse>
  /** Listens and returns the port; all but health and ready answer 503 until `accept`. Errors: `unavailable`. */
  open(): Promise<number>
  /** Starts taking requests; `start` goes into `rsm server status`. */
  accept(start: { madeFirstUser: boolean }): void
  refuse(): Promise<void>
  /** Closes the sockets of agents and terminals with 1001. */
  closeLinks(): void
  /** Stops listening. Resolves when requests in flight are answered or the drain time is over. */
  close(): Promise<void>
}

export function createListeners(base: Base, work: Work, options: ServerOptions): Listeners {
  const { data, facts, clock, log } = base
  let accepting = false
  let madeFirstUser: boolean | null = null
  let control: Control | undefined
  const webSockets = createWebSockets({
    ...base,
    ...work.context,
    member: work.membership.member,
    holdsLease: work.holdsLease,
    links: data.links,
    relay: work.relay,
    credentials: work.credentials,
    wsIdleTimeout: options.wsIdleTimeout,
    accepting: () => accepting,
    refused: (request, caller, error) => work.events.refusedUpgrade(request, caller, error),
    frameRefused: (socket, message) => work.events.refusedTerminalFrame(socket, message),
  })
  const stopShedding = data.shared === null ? () => undefined : shedLinks({ ...work, webSockets, clock })
  const status = () => statusOf(base, work)
  let address: string | null = null
  const servers = () =>
    listServers({
      data,
      member: work.membership.member,
      address: () => address,
      unreached: (name) => work.relay?.fault(name) ?? null,
      load: () => ({
        links: webSockets.load().open,
        tasks: work.context.engine.load().then(({ tasks }) => tasks),
      }),
    })
  const readiness = () => readinessOf({ ...work, data, isAccepting: accepting })
  const listener = createListener(base.tls?.certificate ?? null, {}, base.clients)
  const app = buildApp(
    {
      ...base,
      store: data.store,
      credentials: work.credentials,
      lastKnown: work.lastKnown,
      listener,
      hsts: options.tls?.hsts === true,
      answered: base.metrics.answered,
      accepting: () => accepting,
      noLongerKept: work.noLongerKept,
    },
    (instance) => {
      recordRequests(instance, { log: work.outbox, refusals: work.refusals, store: data.store })
      registerRoutes(instance, behindRoutes(base, work, options, { webSockets, status, servers, readiness }))
    },
  )
  const unused = trackUnusedConnections(app.server)
  const serving = serveCertificate(base.tls, listener, log, () => void register())
  const register = async () =>
    address && work.relay?.listensAt(endpointOf(options, address, serving.fingerprint))

  return {
    serving,
    inject: (request) => app.inject(request),
    async open() {
      webSockets.attach(app.server)
      await app
        .listen({ host: options.host, port: options.port, backlog: listenBacklog })
        .catch((error: NodeJS.ErrnoException) => {
          throw explainListen(error, options)
        })
      const { port } = app.server.address() as AddressInfo
      address = urlOf(base, isUnspecified(options.host) ? hostname() : options.host, port)
      await register()
      const parts = {
        ...work.context,
        ...data,
        ...work,
        clock,
        log,
        status,
        servers,
        ready: () => readiness().reasons.length === 0,
        madeFirstUser: () => madeFirstUser,
      }
      const operations = controlOperations(parts)
      control = await serveControl(base.path, operations, log)
      return port
    },
    accept(start) {
      madeFirstUser = start.madeFirstUser
      accepting = true
    },
    async refuse() {
      accepting = false
      await control?.close()
    },
    closeLinks() {
      stopShedding()
      webSockets.close()
    },
    async close() {
      facts.publish('stopping', { reason: 'the server is shutting down' })
      const grace = setTimeout(() => app.server.closeAllConnections(), drainTime)
      // A response that waited for the disk may have promised keep-alive.
      const idling = setInterval(() => app.server.closeIdleConnections(), idleCheckInterval)
      const closed = app.close()
      unused.close()
      await closed
      clearTimeout(grace)
      clearInterval(idling)
    },
  }
}

async function statusOf({ data }: Base, { context }: Work): Promise<ServerStatus> {
  const { serverRuns, agreed } = data
  return {
    version: serverVersion(),
    serverTime: context.time(),
    startedAt: serverRuns.startedAt,
    run: { run: serverRuns.id, sequence: serverRuns.sequence },
    restore: await context.engine.restore(),
    clock: agreed.doubt,
  }
}

/** Whether a listen address means all addresses, so that no client can connect to it. */
const isUnspecified = (host: string) => host === '0.0.0.0' || host === '::'

function behindRoutes(
  { data, metrics, path }: Base,
  { context, credentials, deliveries, fleetEvents, backup, membership }: Work,
  options: ServerOptions,
  {
    webSockets,
    ...asked
  }: { webSockets: WebSockets } & Pick<RouteDependencies, 'status' | 'servers' | 'readiness'>,
): RouteDependencies {
  const { store, audit, serverRuns, shared } = data
  const { engine, fleet, terminals, passwords } = context
  const { heartbeatInterval, metricsInterval } = options
  const { startedAt } = serverRuns
  const version = serverVersion()
  return {
    services: createServices(context, options),
    context,
    audit,
    events: fleetEvents,
    credentials,
    info: () => ({ version, serverTime: context.time(), startedAt, heartbeatInterval, metricsInterval }),
    ...asked,
    backup,
    scrape: metrics.exposition({
      version,
      hosts: () => fleet.countByStatus(),
      work: () => engine.load(),
      links: () => webSockets.load(),
      terminals: () => terminals.load(),
      journalQueue: () => data.waitingWrites(),
      loginQueue: () => passwords.queueLength,
      room: () => roomOf(path),
      readOnly: () => store.readOnlyReason !== null,
      auditRefused: () => audit.refusal !== null,
      deliveries: () => deliveries.waiting(),
      shared: () => shared && { ...standingOf(shared, membership), hasFault: shared.fault !== null },
    }),
    metricsOpen: options.metricsOpen === true,
  }
}
