import type { IncomingMessage } from 'node:http'
import { type AuditDetail, type AuditObject, showHead } from '../../core/audit.ts'
import { httpStatus } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import type { Clients } from '../access/client-address.ts'
import { actorOf, systemActor, taskFacts } from '../storage/audit-entry.ts'
import type { Facts, LocalFacts } from '../storage/local-facts.ts'
import type { AuditEvent, AuditLog, NotedHead, RecordEvent } from '../storage/ports/audit-log.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import type { Refusals } from './refusals.ts'

/** Milliseconds between log lines with the audit head: only a head noted elsewhere reveals a truncated audit log. */
const headInterval = 3600_000

interface EventDependencies {
  audit: Pick<AuditLog, 'head'>
  outbox: Pick<AuditLog, 'append'>
  noted: NotedHead
  refusals: Refusals
  store: Store
  clients: Clients
  facts: LocalFacts
  log: Log
}

export interface ServerEvents {
  record: RecordEvent
  refusedUpgrade(request: IncomingMessage, caller: Caller | undefined, error: unknown): Promise<void>
  /** Records a frame that a terminal client sent for another session than its own. */
  refusedTerminalFrame(
    client: { caller: Caller; ip: string | null; sessionId: string },
    message: string,
  ): void
  sayHead(): Promise<void>
  /** Logs and audits entries lost since the last noted head. Call before the first `sayHead`. */
  checkHead(): Promise<void>
  stop(): void
}

export function recordServerEvents({
  audit,
  outbox,
  noted,
  refusals,
  store,
  clients,
  facts,
  log,
}: EventDependencies): ServerEvents {
  // The outbox logs failures itself.
  const write = (event: AuditEvent) =>
    outbox.append(event).then(
      () => undefined,
      () => undefined,
    )
  const record: RecordEvent = (action, object, outcome, detail) =>
    write({ actor: systemActor, ip: null, action, object, outcome, detail })
  const sayHead = async () => {
    log.info({ auditHead: showHead(await audit.head()) }, 'audit head')
    await noted.note().catch((error: unknown) => log.warn({ err: error }, 'could not note the audit head'))
  }

  const guarded = guardedBy(log)
  const stopFacts = recordFacts({ write, refusals, store, facts, log }, record)
  const timer = setInterval(() => void sayHead(), headInterval)
  timer.unref()

  return {
    record,
    async refusedUpgrade(request, caller, error) {
      const status = httpStatus(error)
      if (status !== 401 && status !== 403 && status !== 429) return
      const ip = clients.addressOf(request)
      // Never log the URL: it may contain a browser's ticket.
      const route = /^\/ws\/[a-z]+/.exec(request.url ?? '')?.[0] ?? 'unknown'
      const message = error instanceof Error ? error.message : ''
      await refusals.note(ip, {
        actor: await actorOf(caller, store),
        ip,
        action: 'access.refuse',
        object: null,
        outcome: 'REFUSED',
        detail: { status, message, method: 'UPGRADE', route },
      })
    },
    refusedTerminalFrame({ caller, ip, sessionId }, message) {
      const object = { type: 'terminal', id: sessionId, name: null }
      const noted = actorOf(caller, store).then((actor) =>
        refusals.note(ip ?? 'unknown', {
          actor,
          ip,
          action: 'terminal.frame',
          object,
          outcome: 'REFUSED',
          detail: { message },
        }),
      )
      guarded(noted)
    },
    sayHead,
    async checkHead() {
      const message = await noted.missing()
      if (message === null) return
      log.error({ reason: message }, 'the audit log has lost entries while the server was down')
      await record('audit.gap', null, 'FAILED', { message })
    },
    stop() {
      clearInterval(timer)
      stopFacts()
    },
  }
}

/** Logs failures of entries that no caller awaits. */
const guardedBy = (log: Log) => (work: Promise<void>) => {
  work.catch((error: unknown) => log.warn({ err: error }, 'could not write an audit entry'))
}

interface FactsDependencies {
  write: (event: AuditEvent) => Promise<void>
  refusals: Refusals
  store: Store
  facts: LocalFacts
  log: Log
}

const terminalObject = ({ id, hostname }: Pick<TerminalRecord, 'id' | 'hostname'>): AuditObject => ({
  type: 'terminal',
  id,
  name: hostname,
})

/** Audits facts of this process; returns a function that stops it. */
function recordFacts(
  { write, refusals, store, facts, log }: FactsDependencies,
  record: RecordEvent,
): () => void {
  const guarded = guardedBy(log)
  const hostObject = async (id: number): Promise<AuditObject> => ({
    type: 'host',
    id,
    name: (await store.get('hosts', id))?.hostname ?? null,
  })

  /** Limits entries that an agent may repeat, like refused calls. */
  function ofAgent(
    agentId: string,
    action: string,
    object: AuditObject | null,
    detail: AuditDetail,
  ): Promise<void> {
    const actor = { type: 'agent', id: agentId, name: agentId, tokenId: null } as const
    const event = { actor, ip: null, action, object, outcome: 'REFUSED', detail } as const
    return refusals.note(`agent ${agentId}`, event)
  }

  async function taskEnded(taskId: string): Promise<void> {
    const task = await store.get('tasks', taskId)
    if (!task) return
    const { id, status, scriptName, hostCount, duration, counts } = task
    const ended = Object.fromEntries(Object.entries(counts ?? {}).filter(([, count]) => count > 0))
    const outcome = status === 'SUCCESS' ? 'SUCCESS' : 'FAILED'
    await record('task.end', { type: 'task', id, name: scriptName }, outcome, {
      status,
      hostCount,
      duration,
      ...ended,
    })
  }

  /** Limits skipped slots like refused calls, because a schedule may skip one every second while a task runs. */
  async function ofSlot({ schedule, slot }: Facts['slot']): Promise<void> {
    const { id, name, owner } = schedule
    const { plannedAt, firstAt, count, outcome, taskId, why, error } = slot
    const object = { type: 'schedule', id, name }
    if (outcome === 'STARTED') {
      const task = taskId === null ? undefined : await store.get('tasks', taskId)
      return record('schedule.run', object, 'SUCCESS', {
        plannedAt,
        taskId,
        owner,
        ...(task && taskFacts(task)),
      })
    }
    const action = outcome === 'FAILED' ? 'schedule.run' : 'schedule.skip'
    const skipped = outcome === 'SKIPPED' ? { firstAt, count, why } : { message: error }
    const detail = { plannedAt, owner, ...skipped }
    const event = { actor: systemActor, ip: null, action, object, outcome: 'FAILED', detail } as const
    return refusals.note(`schedule ${id}`, event)
  }

  async function ofTerminal(event: Facts['terminal']): Promise<void> {
    const { record: session } = event
    const { hostId, user, exitCode, signal, reason, startedAt, endedAt } = session
    const object = terminalObject(session)
    if (event.kind === 'ended') {
      const duration = Date.parse(endedAt ?? startedAt) - Date.parse(startedAt)
      return record('terminal.close', object, 'SUCCESS', { hostId, user, exitCode, signal, reason, duration })
    }
    if (event.kind === 'full') return record('terminal.full', object, 'SUCCESS', { hostId, user })
    const { caller, ip, kind } = event
    const action = kind === 'watched' ? 'terminal.watch' : 'terminal.attach'
    const actor = await actorOf(caller, store)
    await write({ actor, ip, action, object, outcome: 'SUCCESS', detail: { hostId, user } })
  }

  const unsubscribe = [
    facts.subscribe('taskEnded', ({ taskId }) => guarded(taskEnded(taskId))),
    facts.subscribe('slot', (event) => guarded(ofSlot(event))),
    facts.subscribe('scheduleSuspended', ({ schedule: { id, name, owner }, why }) => {
      const object = { type: 'schedule', id, name }
      guarded(record('schedule.suspend', object, 'SUCCESS', { message: why, owner }))
    }),
    facts.subscribe('agentTokenEnded', ({ agentId }) => {
      const object = { type: 'agent', id: agentId, name: agentId }
      guarded(record('agent.tokenEnd', object, 'SUCCESS', {}))
    }),
    facts.subscribe('foreignFrame', ({ agentId, hostId, type, id }) => {
      const message = 'a frame for a task or session of another host'
      guarded(ofAgent(agentId, 'agent.frame', { type, id, name: null }, { hostId, message }))
    }),
    facts.subscribe('strayFrames', ({ agentId, hostId }) => {
      const object = { type: 'agent', id: agentId, name: agentId }
      const message = 'its link was closed: too many stray frames'
      guarded(ofAgent(agentId, 'agent.frame', object, { hostId, message }))
    }),
    facts.subscribe('terminal', (event) => guarded(ofTerminal(event))),
    facts.subscribe('distrusted', ({ agentId, hostId, taskId, message }) => {
      const task = taskId === null ? null : { type: 'task', id: taskId, name: null }
      guarded(ofAgent(agentId, 'agent.distrust', task, { hostId, message }))
    }),
    facts.subscribe('restored', ({ hostId, agentId, reason, tasks }) => {
      log.error({ reason, tasks }, 'restored from a backup: pending executions are held')
      const noted = hostObject(hostId).then((object) =>
        record('restore.notice', object, 'SUCCESS', { agentId, message: reason, tasks }),
      )
      guarded(noted)
    }),
    facts.subscribe('unprovenMark', ({ agentId, hostId, hasMac }) => {
      const message = `its mark is ahead of this store, but ${hasMac ? 'the MAC is invalid' : 'has no MAC (older agent)'}; no work is held`
      guarded(ofAgent(agentId, 'agent.mark', null, { hostId, message }))
    }),
    facts.subscribe('hostKeyPinned', ({ hostId, hostname, key }) => {
      const object = { type: 'host', id: hostId, name: hostname }
      guarded(record('host.keyPin', object, 'SUCCESS', { hostKey: key }))
    }),
    facts.subscribe('hostnameYielded', ({ hostId, previous, hostname }) => {
      const message = `it never had an agent, and another machine was enrolled as ${previous}`
      const object = { type: 'host', id: hostId, name: previous }
      guarded(record('host.rename', object, 'SUCCESS', { hostname, message }))
    }),
    facts.subscribe('duplicateAgent', ({ hostId, duplicate }) => {
      const message = duplicate
        ? 'two agents share one identity: the one that holds the link keeps it, new links are refused for 5 minutes'
        : 'new links are taken again'
      const outcome = duplicate ? 'REFUSED' : 'SUCCESS'
      guarded(
        hostObject(hostId).then((object) =>
          record('agent.duplicate', object, outcome, { duplicate, message }),
        ),
      )
    }),
  ]
  return () => {
    for (const end of unsubscribe) end()
  }
}
