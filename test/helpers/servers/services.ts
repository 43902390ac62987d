import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { Services } from '../../../src/core/services.ts'
import { systemClock as clock, isoTime } from '../../../src/disk/clock.ts'
import { createLog } from '../../../src/disk/log.ts'
import { createClients } from '../../../src/server/access/client-address.ts'
import { createFirstUser, createPasswords } from '../../../src/server/access/passwords.ts'
import { createInstaller } from '../../../src/server/agents/installs/installer.ts'
import { openHandedOut } from '../../../src/server/agents/releases/handed-out.ts'
import { createFileKeeper, defaultMaxFileSize } from '../../../src/server/files/files.ts'
import { createCarried, createTransfers } from '../../../src/server/files/transfers.ts'
import { createFleet } from '../../../src/server/hosts/fleet.ts'
import { type Context, createContext, type ForCallers } from '../../../src/server/services/context.ts'
import { createReadersOfTasks } from '../../../src/server/services/logs/readers.ts'
import { createServices } from '../../../src/server/services/services.ts'
import { openDirectoryFiles } from '../../../src/server/storage/files/directory-files.ts'
import { createFileHistory } from '../../../src/server/storage/files/history.ts'
import { createPresence } from '../../../src/server/storage/files/presence.ts'
import { openFileRecordings } from '../../../src/server/storage/files/recordings.ts'
import { createShortLived } from '../../../src/server/storage/files/short-lived.ts'
import { loadKeys } from '../../../src/server/storage/keys.ts'
import { createLocalFacts } from '../../../src/server/storage/local-facts.ts'
import type { UserCaller } from '../../../src/server/storage/ports/caller.ts'
import type { Results } from '../../../src/server/storage/ports/outputs.ts'
import type { Store, Transaction } from '../../../src/server/storage/ports/store.ts'
import { createEngine, type Engine } from '../../../src/server/tasks/engine.ts'
import { createTerminals, createTickets } from '../../../src/server/terminals/terminals.ts'
import { createWebhookEvents, type Webhook } from '../../../src/server/webhooks/events.ts'
import { createJudge } from '../../../src/server/webhooks/judge.ts'
import { createPost } from '../../../src/server/webhooks/post.ts'
import { createSender } from '../../../src/server/webhooks/sender.ts'
import { believed } from '../faults/believed-clock.ts'
import { fileGround, type OpenGround } from './grounds.ts'
import { adminPassword, passwordCost } from './server.ts'

/** The server's internals without HTTP or sockets, and a store whose disk can refuse writes. */
export interface Insides {
  services: Services
  /** The caller of the services. */
  admin: UserCaller
  engine: Engine
  context: Context
  results: Results
  directory: string
  /** Makes the store refuse writes, as on a full disk. */
  refuse(refuses: boolean): void
}

/** The server's own services on a real store, without HTTP, for its first user. */
export async function startInsides(
  t: ExecutionContext,
  openGround: OpenGround = fileGround,
): Promise<Insides> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-services-'))
  const log = createLog('ERROR')
  const facts = createLocalFacts()
  let refuses = false
  const ground = await openGround(directory, (disk) => ({
    ...disk,
    get readOnlyReason() {
      return refuses ? 'the disk is full' : null
    },
    transact: (work) =>
      refuses ? Promise.reject(new RsmError('unavailable', 'the disk is full')) : twice(disk, work),
  }))
  const { store, serverRuns, hints, links, ownership, executions, outputs, results, versions } = ground
  const at = isoTime(clock.now())
  const { keys } = await loadKeys(join(directory, 'keys'), { store, newKeys: false, at })
  const presence = await createPresence({
    path: join(directory, 'presence.json'),
    heartbeatInterval: 30,
    version: '0.1.0',
    hints,
    clock,
    log,
  })
  const history = createFileHistory({ directory: join(directory, 'metrics'), clock, log })
  const fleet = createFleet(store, presence, log)
  const { knownHosts } = fleet
  const member = await ownership.join('server')
  const handedOut = await openHandedOut(
    { path: directory, tls: null, clients: createClients([]), log },
    { host: '127.0.0.1' },
  )
  const webhookEvents = await createWebhookEvents({ store, executions, fleet, clock, log })
  const judge = createJudge({})
  const sender = createSender({ post: createPost(judge), keys, clock })
  const carried = createCarried({ executions, facts, clock })
  const real = createEngine({
    carried,
    webhookEvents,
    install: createInstaller({ ...handedOut, store, keys, links, facts, clock }),
    member,
    executions,
    ownership,
    links,
    store,
    serverRuns,
    outputs,
    results,
    presence,
    hints,
    facts,
    keys,
    clock,
    log,
    knownHosts,
    maxFileSize: defaultMaxFileSize,
  })
  const engine: Engine = {
    ...real,
    /** As the listener of agents does: each link has a claim of its own. */
    async linked(link) {
      const { hostId, agentId } = link
      const former = await links.holder(hostId)
      if (former) await links.release(former)
      const claimed = await links.claim(hostId, { server: member, agentId }, () => undefined)
      await real.linked(Object.assign(link, claimed && { claim: claimed.claim }))
    },
  }
  const recordings = await openFileRecordings(join(directory, 'terminals'))
  const shortLived = createShortLived(clock)
  const agreed = believed(() => clock.now())
  const files = createFileKeeper({
    store,
    files: await openDirectoryFiles(join(directory, 'files')),
    keys,
    facts,
    agreed,
    clock,
    log,
    maxFileSize: defaultMaxFileSize,
  })
  const terminals = createTerminals({
    member,
    links,
    ownership,
    relay: null,
    store,
    hints,
    facts,
    recordings,
    keys,
    clock,
    log,
  })
  const passwords = createPasswords(passwordCost)
  await createFirstUser(store, passwords, clock, adminPassword)
  const tokenId = await store.transact(async (tx) => {
    const id = await tx.nextId('tokens')
    const at = isoTime(clock.now())
    const session = { kind: 'session', name: null, tokenHash: 'x', userId: 1, role: 'ADMIN' } as const
    tx.put('tokens', {
      ...session,
      id,
      createdAt: at,
      lastUsedAt: at,
      expiresAt: isoTime(clock.now() + 3600_000),
    })
    return id
  })
  const parts = {
    store,
    fleet,
    webhookEvents,
    judge,
    deliveries: { test: (webhook: Webhook) => sender.test(webhook, new AbortController().signal) },
    presence,
    history,
    engine,
    ownership,
    shared: null,
    outputs,
    terminals,
    tickets: createTickets(shortLived, clock),
    recordings,
    shortLived,
    readers: createReadersOfTasks(null),
    hints,
    facts,
    versions,
    keys,
    agreed,
    files,
    transfers: createTransfers({ carried, store, executions, files, shared: null, facts, clock }),
    passwords,
    handedOut,
    clock,
    log,
  }
  const context = createContext(parts)
  t.teardown(async () => {
    await engine.stop()
    await terminals.stop()
    await presence.close()
    await history.close()
    await ground.close()
    await rm(directory, { recursive: true, force: true })
  })
  const ofServer = createServices(context, { heartbeatInterval: 30, metricsInterval: 60 })
  const admin: UserCaller = {
    type: 'user',
    id: 1,
    username: 'admin',
    role: 'ADMIN',
    tokenId,
    ownerRole: 'ADMIN',
    rights: [],
    mayOutlast: true,
    tokenKind: 'session',
    expiresAt: Number.POSITIVE_INFINITY,
    idleAt: Number.POSITIVE_INFINITY,
  }
  const services: Services = {
    hosts: by(admin, ofServer.hosts),
    clusters: by(admin, ofServer.clusters),
    scripts: by(admin, ofServer.scripts),
    users: by(admin, ofServer.users),
    tokens: by(admin, ofServer.tokens),
    sessions: by(admin, ofServer.sessions),
    enrollments: by(admin, ofServer.enrollments),
    tasks: by(admin, ofServer.tasks),
    webhooks: by(admin, ofServer.webhooks),
    schedules: by(admin, ofServer.schedules),
  }
  const refuse = (now: boolean) => {
    refuses = now
  }
  return { services, admin, engine, context, results, directory, refuse }
}

/** A service for one caller, as the client has it. */
function by<S extends object>(caller: UserCaller, service: ForCallers<S>): S {
  const entries = Object.entries(service) as [string, (caller: UserCaller, ...args: unknown[]) => unknown][]
  return Object.fromEntries(
    entries.map(([name, call]) => [name, (...args: unknown[]) => call(caller, ...args)]),
  ) as S
}

/** Runs the work of a transaction twice, as a store may; the first run has no effect. */
async function twice<T>(store: Store, work: (tx: Transaction) => Promise<T> | T): Promise<T> {
  const drop = new Error('run once more')
  const first = store.transact(async (tx) => {
    await work({ ...tx, nextId: async () => -1 })
    throw drop
  })
  await first.catch(() => undefined)
  return store.transact(work)
}
