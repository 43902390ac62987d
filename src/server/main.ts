import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openDataDirectory } from '../disk/data-directory.ts'
import { createCredentials } from './access/credentials.ts'
import { createFirstUser } from './access/first-user.ts'
import { createPasswords } from './access/passwords.ts'
import { recordRequests } from './audit/recorder.ts'
import { createRefusals } from './audit/refusals.ts'
import { recordServerEvents } from './audit/server-events.ts'
import { isoTime, systemClock } from './clock.ts'
import { type Control, serveControl } from './control/control.ts'
import { controlOperations } from './control/operations.ts'
import { openEmbedded } from './embedded/open.ts'
import { createEngine } from './engine/engine.ts'
import { createEvents } from './events/events.ts'
import { createHousekeeping, firstSweepAfter } from './housekeeping/housekeeping.ts'
import {
  createRetention,
  defaultRecordingRetention,
  defaultTaskRetention,
  isPastRetention,
} from './housekeeping/retention.ts'
import { buildApp } from './http/app.ts'
import { createClients } from './http/client-address.ts'
import { createListener } from './http/listener.ts'
import { trackUnusedConnections } from './http/unused-connections.ts'
import { createHub } from './hub/hub.ts'
import { createLocalFacts } from './local-facts.ts'
import { createLog } from './log.ts'
import { joinServers } from './membership.ts'
import { createServerMetrics } from './metrics/metrics.ts'
import { explainListen, refuseOpenHttp, type ServerOptions } from './options.ts'
import { registerRoutes } from './routes/routes.ts'
import { createAgents } from './services/agents.ts'
import { createContext } from './services/context.ts'
import { createFleet } from './services/hosts/fleet.ts'
import { createLogin } from './services/login.ts'
import { createServices } from './services/services.ts'
import { createTerminalService, readRecording } from './services/terminals.ts'
import { createTerminalRetention } from './terminals/retention.ts'
import { createTerminals } from './terminals/sessions.ts'
import { createTickets } from './terminals/tickets.ts'
import { serveCertificate } from './tls/serving.ts'
import { openTls } from './tls/tls.ts'
import { serverVersion } from './version.ts'

export interface RunningServer {
  url: string
  port: number
  /** Of the certificate that serves now, `sha256:` and hex; null without TLS. */
  readonly fingerprint: string | null
  /** Whether nobody but itself has signed that certificate: clients have to pin it. */
  readonly selfSigned: boolean
  /** Takes up the certificate that is in its files now; keeps the old one, with an error in the log, if that is bad. */
  reloadCertificate(): Promise<void>
  /** The first user, if this start made one and chose its password. */
  createdAdmin: { username: string; password: string } | null
  /** Resolves when the server has stopped, for whatever reason. */
  closed: Promise<void>
  /** Stops in order; resolves within 10 s. */
  close(): Promise<void>
}

/** Among the servers of its store: this one is alone. */
const serverName = 'server'
/** Streams and requests under way get so long to end before their sockets are closed. */
const drainTime = 5000
const idleLook = 50
/** Connections that wait to be accepted; the kernel takes its own bound, somaxconn, where that is less. */
const listenBacklog = 8192

/**
 * Starts the server: lock, keys, store, engine, then the doors. What was running when a former process ended goes on
 * where it stood before the first request is taken.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  refuseOpenHttp(options)
  const clients = createClients(options.trustedProxies ?? [])
  const log = createLog(options.logLevel)
  const clock = options.clock ?? systemClock
  const startedAt = isoTime(clock.now())
  const facts = createLocalFacts()
  const metrics = createServerMetrics(facts)
  const directory = await openDataDirectory(options.dataDir)
  const { path } = directory
  const keysDirectory = options.keysDir ?? join(path, 'keys')
  const onFatal = (error: unknown) => {
    log.error({ err: error }, 'the disk can not be trusted any more; stopping at once')
    process.exit(1)
  }
  const refuse = async (error: unknown) => {
    await directory.release()
    throw error
  }
  const tls = await openTls(options.tls ?? {}, {
    directory: keysDirectory,
    host: options.host,
    log,
  }).catch(refuse)
  const { heartbeatInterval, warnAfter } = options
  const data = await openEmbedded(path, {
    heartbeatInterval,
    warnAfter,
    keysDirectory,
    newKeys: options.newKeys === true,
    metrics,
    clock,
    log,
    onFatal,
  }).catch(refuse)
  const membership = await joinServers(data.ownership, serverName, log)
  const { store, hints, audit, notedHead: noted, presence, agreed, serverRuns } = data
  const refusals = createRefusals((event) => audit.append(event), clock)
  const events = recordServerEvents({ audit, noted, refusals, store, clients, facts, log })
  const fleet = createFleet(store, presence, log)
  const { knownHosts } = fleet
  const engine = createEngine({ ...data, member: membership.member, facts, clock, log, knownHosts })
  const passwords = createPasswords(options.passwordCost)
  const credentials = createCredentials(store, clock)
  const terminals = createTerminals({
    ...data,
    facts,
    clock,
    log,
    record: options.recordTerminals !== false,
    idleLimit: options.terminalIdleLimit ?? 3600,
  })
  const tickets = createTickets(data.shortLived, clock)
  const context = createContext({ ...data, fleet, engine, terminals, tickets, passwords, facts, clock, log })
  const retention = createRetention({ ...data, ...context }, options.taskRetention ?? defaultTaskRetention)
  const recordingRetention = options.recordingRetention ?? defaultRecordingRetention
  const oldTerminals = createTerminalRetention({ ...context, days: recordingRetention })
  const housekeeping = createHousekeeping({
    ...context,
    retention,
    oldTerminals,
    firstAfter: options.firstSweepAfter ?? firstSweepAfter,
  })
  const fleetEvents = createEvents(context)
  let accepting = false
  const hub = createHub({
    member: membership.member,
    links: data.links,
    credentials,
    engine,
    terminals,
    tickets,
    clients,
    store,
    presence,
    hints,
    facts,
    clock,
    log,
    wsIdleTimeout: options.wsIdleTimeout,
    accepting: () => accepting,
    refused: (request, caller, error) => events.refusedUpgrade(request, caller, error),
    frameRefused: (socket, message) => events.refusedTerminalFrame(socket, message),
  })
  const scrape = metrics.exposition({
    version: serverVersion(),
    hosts: () => fleet.countByStatus(),
    work: () => engine.load(),
    links: () => hub.load(),
    terminals: () => terminals.load(),
    journalQueue: () => data.waitingWrites(),
    loginQueue: () => passwords.queueLength,
    readOnly: () => store.readOnlyReason !== null,
    auditRefused: () => audit.refusal !== null,
  })
  const listener = createListener(tls?.certificate ?? null, {}, clients)
  const serving = serveCertificate(tls, listener, log)
  const { answered } = metrics
  const door = {
    listener,
    clients,
    hsts: options.tls?.hsts === true,
    answered,
    accepting: () => accepting,
    noLongerKept: (noun: 'tasks' | 'terminals', id: string) =>
      isPastRetention(id, noun === 'tasks' ? retention.days : recordingRetention, agreed.age()),
  }
  const app = buildApp({ store, credentials, log, ...door }, (instance) => {
    recordRequests(instance, { log: audit, refusals, store })
    registerRoutes(instance, {
      services: createServices(context),
      terminals: (caller) => createTerminalService(context, caller),
      recording: (caller, sessionId) => readRecording(context, caller, sessionId),
      login: createLogin(context),
      agents: createAgents(context, options),
      context,
      audit,
      events: fleetEvents,
      ready: () => accepting && store.readOnlyReason === null && audit.refusal === null,
      info: () => ({
        version: serverVersion(),
        serverTime: context.time(),
        startedAt,
        heartbeatInterval,
        metricsInterval: options.metricsInterval,
      }),
      status: async () => ({
        version: serverVersion(),
        serverTime: context.time(),
        startedAt: serverRuns.startedAt,
        run: { run: serverRuns.id, sequence: store.sequence },
        restore: await engine.restore(),
        clock: agreed.doubt,
      }),
      scrape,
      metricsOpen: options.metricsOpen === true,
    })
  })
  const unused = trackUnusedConnections(app.server)
  let control: Control | undefined

  async function sayReplacedKeys(): Promise<void> {
    const { replacedKeys } = data
    if (replacedKeys === null) {
      if (options.newKeys === true) log.info({}, 'the keys are those of the store: --new-keys replaced none')
      return
    }
    const { agents, credentials, tasks } = replacedKeys
    log.error(
      { ...replacedKeys },
      `new keys: ${agents.length} agents must be enrolled again, credentials of ${credentials.length} hosts and secret parameters of ${tasks.length} tasks are gone`,
    )
    await events.record('keys.replace', null, 'SUCCESS', { ...replacedKeys })
  }

  async function open(): Promise<{ username: string; password: string; generated: boolean } | null> {
    await events.checkHead()
    await sayReplacedKeys()
    await engine.recover()
    await terminals.recover()
    hub.attach(app.server)
    await app
      .listen({ host: options.host, port: options.port, backlog: listenBacklog })
      .catch((error: NodeJS.ErrnoException) => {
        throw explainListen(error, options)
      })
    control = await serveControl(path, controlOperations({ agreed, engine, audit, clock }), log)
    // After the port is ours: a start that fails must not leave a user whose password nobody has seen.
    const admin = await createFirstUser(store, passwords, clock, options.adminPassword)
    await data.markUsed()
    if (admin) {
      const user = { type: 'user', id: null, name: admin.username }
      await events.record('user.create', user, 'SUCCESS', { role: 'ADMIN', first: true })
    } else if (options.adminPassword !== undefined)
      log.info({}, 'RSM_ADMIN_PASSWORD is not used: it is for the first start of an empty store')
    return admin
  }

  /**
   * Links first and the engine with them, so that no host counts as unreachable because this server leaves; then the
   * doors, the disk last: nothing acknowledged is cut off.
   */
  async function shut(): Promise<void> {
    accepting = false
    housekeeping.stop()
    await control?.close()
    const stepping = engine.stop()
    await membership.leave()
    hub.close()
    facts.publish('stopping', { reason: 'the server is shutting down' })
    const grace = setTimeout(() => app.server.closeAllConnections(), drainTime)
    // An answer that waited for the disk may have been written as if its connection would stay.
    const idling = setInterval(() => app.server.closeIdleConnections(), idleLook)
    const closed = app.close()
    unused.close()
    await closed
    clearTimeout(grace)
    clearInterval(idling)
    fleetEvents.close()
    await stepping
    await terminals.stop()
    events.stop()
    await refusals.close()
    await events.record('server.stop', server, 'SUCCESS', { pid: process.pid })
    await events.sayHead()
    await data.close()
    await directory.release()
  }

  const server = { type: 'server', id: store.storeId, name: null }
  let admin: Awaited<ReturnType<typeof open>>
  try {
    admin = await open()
  } catch (error) {
    await shut()
    throw error
  }
  const { port } = app.server.address() as AddressInfo
  await events.record('server.start', server, 'SUCCESS', { pid: process.pid, host: options.host, port })
  await events.sayHead()
  accepting = true
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  let closing: Promise<void> | undefined
  let markClosed: () => void = () => undefined
  const closed = new Promise<void>((resolve) => {
    markClosed = resolve
  })
  log.info({ host: options.host, port, dataDir: path, storeId: store.storeId }, 'server started')
  return {
    url: `${tls === null ? 'http' : 'https'}://${host}:${port}`,
    port,
    get fingerprint() {
      return serving.fingerprint
    },
    get selfSigned() {
      return serving.selfSigned
    },
    reloadCertificate: () => serving.reload(),
    createdAdmin: admin?.generated ? { username: admin.username, password: admin.password } : null,
    closed,
    close() {
      closing ??= shut().then(() => {
        log.info({}, 'server stopped')
        markClosed()
      })
      return closing
    },
  }
}
