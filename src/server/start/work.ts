import { createCredentials } from '../access/credentials.ts'
import { createPasswords } from '../access/passwords.ts'
import { openAuditCopy } from '../audit/copy/open-audit-copy.ts'
import { createRefusals } from '../audit/refusals.ts'
import { recordServerEvents } from '../audit/server-events.ts'
import { createEngine } from '../engine/engine.ts'
import { createEvents } from '../events/events.ts'
import { createHousekeeping, firstSweepAfter } from '../housekeeping/housekeeping.ts'
import {
  createRetention,
  defaultRecordingRetention,
  defaultTaskRetention,
  isPastRetention,
} from '../housekeeping/retention.ts'
import { createInstaller } from '../installs/installer.ts'
import { createBackups } from '../keep/backups.ts'
import { createRemoval } from '../keep/remove-old.ts'
import { createTurn } from '../keep/turn.ts'
import { joinServers } from '../membership.ts'
import type { ServerOptions } from '../options.ts'
import { openHandedOut } from '../releases/handed-out.ts'
import { createContext } from '../services/context.ts'
import { createFleet } from '../services/hosts/fleet.ts'
import { createTerminalRetention } from '../terminals/retention.ts'
import { createTerminals } from '../terminals/terminals.ts'
import { createTickets } from '../terminals/tickets.ts'
import type { Base } from './base.ts'

/** Among the servers of its store: this one is alone. */
const serverName = 'server'

export type Work = Awaited<ReturnType<typeof startWork>>

/** What a server does on its store while no door is open: tasks, terminal sessions, what is recorded, what expires. */
export async function startWork(base: Base, options: ServerOptions) {
  const { data, clients, facts, clock, log } = base
  const { store, presence, agreed, audit, notedHead: noted } = data
  const membership = await joinServers(data.ownership, serverName, log)
  const { member } = membership
  const refusals = createRefusals((event) => audit.append(event), clock)
  const events = recordServerEvents({ audit, noted, refusals, store, clients, facts, log })
  const fleet = createFleet(store, presence, log)
  const { knownHosts } = fleet
  const handedOut = await openHandedOut(base, options)
  const install = createInstaller({ ...data, ...handedOut, facts, clock })
  const engine = createEngine({ ...data, member, facts, clock, log, knownHosts, install })
  const terminals = createTerminals({
    ...data,
    member,
    facts,
    clock,
    log,
    record: options.recordTerminals !== false,
    idleLimit: options.terminalIdleLimit ?? 3600,
  })
  const passwords = createPasswords(options.passwordCost)
  const credentials = createCredentials(store, clock)
  const tickets = createTickets(data.shortLived, clock)
  const context = createContext({
    ...data,
    handedOut,
    fleet,
    engine,
    terminals,
    tickets,
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
  const turn = createTurn()
  const housekeeping = createHousekeeping({
    ...context,
    turn,
    retention,
    oldTerminals,
    firstAfter: options.firstSweepAfter ?? firstSweepAfter,
  })
  const auditCopy =
    options.auditCopy === undefined ? null : openAuditCopy({ ...base, audit }, options.auditCopy)
  return {
    auditCopy,
    membership,
    refusals,
    events,
    credentials,
    context,
    housekeeping,
    removeOld: createRemoval({ retention, oldTerminals, turn }),
    backup: createBackups({ keep: data.keep, turn, log }),
    fleetEvents: createEvents(context),
    /** Whether what had this id may have been removed for its age. */
    noLongerKept: (noun: 'tasks' | 'terminals', id: string) =>
      isPastRetention(id, noun === 'tasks' ? retention.days : recordingDays, agreed.age()),
  }
}
