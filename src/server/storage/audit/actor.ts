import type { AuditActor, AuditDetail } from '../../../core/audit.ts'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Caller } from '../ports/caller.ts'
import type { Store } from '../ports/store.ts'

/** What the server does by itself. */
export const systemActor: AuditActor = { type: 'system', id: null, name: null, tokenId: null }
const anonymous: AuditActor = { type: 'anonymous', id: null, name: null, tokenId: null }

/** Who called, as the audit log names it. */
export async function actorOf(caller: Caller | undefined, store: Store): Promise<AuditActor> {
  switch (caller?.type) {
    case undefined:
      return anonymous
    case 'user':
      return { type: 'user', id: caller.id, name: caller.username, tokenId: caller.tokenId }
    case 'agent':
      return { type: 'agent', id: caller.agentId, name: caller.agentId, tokenId: null }
    case 'enrollment': {
      const name = (await store.get('enrollments', caller.id))?.name ?? null
      return { type: 'enrollment', id: caller.id, name, tokenId: null }
    }
  }
}

/** What commands on the server's own machine do is recorded as the system's. */
export const recordForSystem = (
  audit: Pick<AuditLog, 'append'>,
  action: string,
  detail: AuditDetail,
  outcome: 'SUCCESS' | 'FAILED' = 'SUCCESS',
) => audit.append({ actor: systemActor, ip: null, action, object: null, outcome, detail })
