import type { IncomingMessage } from 'node:http'
import { showHead } from '../../core/audit.ts'
import { httpStatus } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import type { Clients } from '../access/client-address.ts'
import { actorOf, systemActor } from '../storage/audit/entry.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { AuditEvent, AuditLog, NotedHead, RecordEvent } from '../storage/ports/audit-log.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Refusals } from './refusals.ts'
import { guardedBy, recordFacts } from './server-facts.ts'

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
