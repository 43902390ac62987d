import type { IncomingMessage } from 'node:http'
import { showHead } from '../../core/audit.ts'
import { httpStatus } from '../../core/errors.ts'
import type { AuditDetail, AuditObject, AuditOutcome } from '../../core/protocol/http/audit.ts'
import type { Caller } from '../access/caller.ts'
import type { Clients } from '../http/client-address.ts'
import type { Facts, LocalFacts } from '../local-facts.ts'
import type { Log } from '../log.ts'
import type { AuditLog, NotedHead } from '../seams/audit-log.ts'
import type { TerminalRecord } from '../seams/records.ts'
import type { Store } from '../seams/store.ts'
import { actorOf, systemActor } from './actor.ts'
import type { Refusals } from './refusals.ts'

/** How often the head goes to the server's log: an end that is cut off can be told by a head noted elsewhere only. */
const headInterval = 3600_000

interface EventDependencies {
  audit: AuditLog
  noted: NotedHead
  refusals: Refusals
  store: Store
  clients: Clients
  facts: LocalFacts
  log: Log
}

/** Records what the server does and sees outside of requests. */
export interface ServerEvents {
  /** Records something that the server did by itself; resolves when it is durable, or refused and logged. */
  record(
    action: string,
    object: AuditObject | null,
    outcome: AuditOutcome,
    detail: AuditDetail,
  ): Promise<void>
  /** Records a refused WebSocket upgrade. */
  refusedUpgrade(request: IncomingMessage, caller: Caller | undefined, error: unknown): Promise<void>
  /** Records a frame that a client of a terminal sent for another's session. */
  refusedTerminalFrame(
    client: { caller: Caller; ip: string | null; sessionId: string },
    message: string,
  ): void
  /** Writes the head to the server's log. */
  sayHead(): Promise<void>
  /** Tells, in the log and in the audit log itself, when that has lost what was noted of it. Before the first `sayHead`. */
  checkHead(): Promise<void>
  stop(): void
}

export function recordServerEvents({
  audit,
  noted,
  refusals,
  store,
  clients,
  facts,
  log,
}: EventDependencies): ServerEvents {
  const record: ServerEvents['record'] = async (action, object, outcome, detail) => {
    await audit
      .append({ actor: systemActor, ip: null, action, object, outcome, detail })
      .catch((error: unknown) => log.warn({ err: error, action }, 'an audit entry could not be written'))
  }
  const sayHead = async () => {
    log.info({ auditHead: showHead(await audit.head()) }, 'audit head')
    await noted.note().catch((error: unknown) => log.warn({ err: error }, 'could not note the audit head'))
  }

  const hostObject = async (id: number): Promise<AuditObject> => ({
    type: 'host',
    id,
    name: (await store.get('hosts', id))?.hostname ?? null,
  })

  /** What an agent may repeat as often as it likes is bounded as refused calls are. */
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
  const terminalObject = ({ id, hostname }: Pick<TerminalRecord, 'id' | 'hostname'>): AuditObject => ({
    type: 'terminal',
    id,
    name: hostname,
  })

  async function ofTerminal(event: Facts['terminal']): Promise<void> {
    const { record: session } = event
    const { hostId, user, exitCode, signal, reason, startedAt, endedAt } = session
    const object = terminalObject(session)
    if (event.kind === 'ended') {
      const duration = Date.parse(endedAt ?? startedAt) - Date.parse(startedAt)
      return record('terminal.close', object, 'SUCCESS', { hostId, user, exitCode, signal, reason, duration })
    }
    const { caller, ip, kind } = event
    const action = kind === 'watched' ? 'terminal.watch' : 'terminal.attach'
    const actor = await actorOf(caller, store)
    await audit.append({ actor, ip, action, object, outcome: 'SUCCESS', detail: { hostId, user } })
  }

  const guarded = (work: Promise<void>) => {
    work.catch((error: unknown) => log.warn({ err: error }, 'an audit entry could not be written'))
  }

  const unsubscribe = [
    facts.subscribe('taskEnded', ({ taskId }) => guarded(taskEnded(taskId))),
    facts.subscribe('agentTokenEnded', ({ agentId }) => {
      const object = { type: 'agent', id: agentId, name: agentId }
      guarded(record('agent.tokenEnd', object, 'SUCCESS', {}))
    }),
    facts.subscribe('foreignFrame', ({ agentId, hostId, type, id }) => {
      const message = 'a frame for a task or session of another host'
      guarded(ofAgent(agentId, 'agent.frame', { type, id, name: null }, { hostId, message }))
    }),
    facts.subscribe('terminal', (event) => guarded(ofTerminal(event))),
    facts.subscribe('distrusted', ({ agentId, hostId, taskId, message }) => {
      const task = taskId === null ? null : { type: 'task', id: taskId, name: null }
      guarded(ofAgent(agentId, 'agent.distrust', task, { hostId, message }))
    }),
    facts.subscribe('restored', ({ hostId, agentId, reason, tasks }) => {
      log.error({ reason, tasks }, 'restored from a backup: what was still to start in it is held')
      const noted = hostObject(hostId).then((object) =>
        record('restore.notice', object, 'SUCCESS', { agentId, message: reason, tasks }),
      )
      guarded(noted)
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
  const timer = setInterval(() => void sayHead(), headInterval)
  timer.unref()

  return {
    record,
    async refusedUpgrade(request, caller, error) {
      const status = httpStatus(error)
      if (status !== 401 && status !== 403 && status !== 429) return
      const ip = clients.addressOf(request)
      // Never the URL itself: a browser's ticket stands in it.
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
      for (const end of unsubscribe) end()
    },
  }
}
