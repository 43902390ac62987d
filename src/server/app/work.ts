import { Mutex } from '../../core/mutex.ts'
import { createCredentials, lastKnown } from '../access/credentials.ts'
import { createPasswords } from '../access/passwords.ts'
import { createInstaller } from '../agents/installs/installer.ts'
import { openHandedOut } from '../agents/releases/handed-out.ts'
import { createAuditOutbox } from '../audit/outbox.ts'
import { createRefusals } from '../audit/refusals.ts'
import { recordServerEvents, type ServerEvents } from '../audit/server-events.ts'
import { createEvents } from '../events/events.ts'
import { createFileKeeper, defaultMaxFileSize } from '../files/files.ts'
import { createCarried, createTransfers } from '../files/transfers.ts'
import { createFleet, type Fleet } from '../hosts/fleet.ts'
import { createHousekeeping, firstSweepAfter } from '../operations/housekeeping/housekeeping.ts'
import {
  createRemoval,
  createRetention,
  defaultRecordingRetention,
  defaultTaskRetention,
  isPastRetention,
} from '../operations/housekeeping/retention.ts'
import { createContext } from '../services/context.ts'
import { createReadersOfTasks } from '../services/logs/readers.ts'
import { createPlanner } from '../services/schedules/planner.ts'
import { withoutCommands } from '../storage/audit-entry.ts'
import { createBackups } from '../storage/backup/backup.ts'
import { joinServers } from '../storage/membership.ts'
import { lease, type Member } from '../storage/ports/cluster.ts'
import { createEngine, type Engine } from '../tasks/engine.ts'
import { ServerRelay } from '../terminals/relay/relay.ts'
import { createTerminalRetention } from '../terminals/retention.ts'
import { createTerminals, createTickets } from '../terminals/terminals.ts'
import { createDeliveries } from '../webhooks/deliveries.ts'
import { createWebhookEvents, type WebhookEvents } from '../webhooks/events.ts'
import { createJudge } from '../webhooks/judge.ts'
import { createPost } from '../webhooks/post.ts'
import { createSender } from '../webhooks/sender.ts'
import type { Base } from './base.ts'
import type { ServerOptions } from './options.ts'

/** Server name if the store is not shared. */
const nameAlone = 'server'
/** Milliseconds for which a cached token stays valid while the store is unreachable (contract §12). */
const trustedFor = 30_000

/** Milliseconds (contract §16). A host that is back is reported sooner, once it is likely to stay. */
const defaultHostGrace = { offline: 60_000, online: 15_000 }

export type Work = Awaited<ReturnType<typeof startWork>>

/** Starts the parts of a server that work on its store, without listeners: tasks, terminals, audit log, retention. */
export async function startWork(base: Base, options: ServerOptions) {
  const { data, clients, facts, clock, log } = base
  const { store, presence, agreed, audit, notedHead: noted } = data
  const kept = options.auditCommands === false ? withoutCommands : undefined
  const membership = await joinServers(data.ownership, options.serverName ?? nameAlone, { clock, log })
  const { member } = membership
  const reaches = (milliseconds: number) => data.shared === null || membership.sinceRenewed() < milliseconds
  const refusals = createRefusals((event) => audit.append(kept?.(event) ?? event), clock)
  const outbox = createAuditOutbox({ audit, kept, clock, log })
  const events = recordServerEvents({ audit, outbox, noted, refusals, store, clients, facts, log })
  const fleet = createFleet(store, presence, log)
  const { knownHosts } = fleet
  const handedOut = await openHandedOut(base, options)
  const { publicUrl } = handedOut
  const webhookEvents = await createWebhookEvents({ ...data, fleet, publicUrl, clock, log })
  const maxFileSize = options.maxFileSize ?? defaultMaxFileSize
  const install = createInstaller({ ...data, ...handedOut, facts, clock })
  const carried = createCarried({ ...data, facts, clock })
  const engine = createEngine({
    ...data,
    carried,
    member,
    facts,
    clock,
    log,
    knownHosts,
    install,
    maxFileSize,
    webhookEvents,
  })
  const { shared, keys } = data
  const relay = shared && new ServerRelay({ member, shared, keys, clock, log })
  const terminals = createTerminals({
    ...data,
    relay,
    member,
    facts,
    clock,
    log,
    record: options.recordTerminals !== false,
    recordingBound: options.recordingBound ?? {},
    idleLimit: options.terminalIdleLimit ?? 3600,
  })
  const files = createFileKeeper({
    ...data,
    facts,
    clock,
    log,
    maxFileSize,
    maxUploadBytes: options.maxUploadBytes,
  })
  const transfers = createTransfers({ ...data, files, carried, facts, clock })
  const passwords = createPasswords(options.passwordCost)
  const credentials = createCredentials(store, clock, () => reaches(trustedFor))
  const tickets = createTickets(data.shortLived, clock)
  const holdsLease = () => reaches(lease)
  const { judge, deliveries } = createWebhookWork(
    base,
    { webhookEvents, fleet, engine, events, member, holdsLease },
    options,
  )
  const context = createContext({
    ...data,
    readers: createReadersOfTasks(data.shared && data.shortLived),
    files,
    transfers,
    handedOut,
    fleet,
    engine,
    terminals,
    tickets,
    webhookEvents,
    deliveries,
    judge,
    passwords,
    facts,
    clock,
    log,
  })
  const retention = createRetention(
    { ...data, ...context },
    { days: options.taskRetention ?? defaultTaskRetention, maxOutputBytes: options.maxOutputBytes ?? 0 },
  )
  const recordingDays = options.recordingRetention ?? defaultRecordingRetention
  const oldTerminals = createTerminalRetention({ ...context, days: recordingDays })
  const dataLock = new Mutex()
  const housekeeping = createHousekeeping({
    ...data,
    ...context,
    dataLock,
    retention,
    oldTerminals,
    firstAfter: options.firstSweepAfter ?? firstSweepAfter,
  })
  return {
    membership,
    relay,
    /** Always true if the store is not shared, because then there is no lease. */
    holdsLease,
    deliveries,
    refusals,
    outbox,
    events,
    credentials,
    lastKnown: lastKnown(store, clock, credentials),
    context,
    housekeeping,
    planner: createPlanner({ context, ownership: data.ownership, member, audit }),
    removeOld: createRemoval({ ...data, retention, oldTerminals, dataLock }),
    backup: createBackups({ maintenance: data.maintenance, dataLock, log }),
    fleetEvents: createEvents(context),
    /** Whether a record with this id may have been removed because of its age. */
    noLongerKept: (noun: 'tasks' | 'terminals', id: string) =>
      isPastRetention(id, noun === 'tasks' ? retention.days : recordingDays, agreed.age()),
  }
}

interface WebhookWorkParts {
  readonly webhookEvents: WebhookEvents
  readonly fleet: Fleet
  readonly engine: Engine
  readonly events: ServerEvents
  readonly member: Member
  readonly holdsLease: () => boolean
}

/** Errors: `usage` for an invalid allowance. */
function createWebhookWork(
  { data, facts, clock, log }: Base,
  { engine, events, ...parts }: WebhookWorkParts,
  { webhooks = {}, webhookHostGrace: hostGrace = defaultHostGrace }: ServerOptions,
) {
  const judge = createJudge(webhooks)
  const post = createPost(judge, undefined, webhooks.proxyVariable)
  const deliveries = createDeliveries({
    ...parts,
    store: data.store,
    ownership: data.ownership,
    agreed: data.agreed,
    sender: createSender({ post, keys: data.keys, clock }),
    openSince: () => engine.openSince(),
    facts,
    record: events.record,
    clock,
    log,
    hostGrace,
  })
  return {
    judge,
    deliveries: {
      ...deliveries,
      async stop() {
        await deliveries.stop()
        post.close()
      },
    },
  }
}
