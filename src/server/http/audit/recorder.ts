import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuditOutcome } from '../../../core/audit.ts'
import { RsmError } from '../../../core/errors.ts'
import { withReserve } from '../../../disk/reserve.ts'
import type { Refusals } from '../../audit/refusals.ts'
import { actorOf } from '../../storage/audit-entry.ts'
import type { AuditLog } from '../../storage/ports/audit-log.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { AppInstance } from '../app.ts'
import type { Operation } from '../operation.ts'
import { asFields, detailOf, loggedIn, nameInPath, type Observed, objectOf } from './request-facts.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Records a durable execution early, because a call may answer only at its end. `replayed`: started earlier. */
    started: ((taskId: string, replayed: boolean) => Promise<void>) | undefined
  }
}

interface RecorderDependencies {
  log: Pick<AuditLog, 'append' | 'refusal'>
  refusals: Refusals
  store: Store
}

/** Facts that the hooks collect about a request. */
interface Watched extends Observed {
  recorded: boolean
}

const refusing = new Set([401, 403, 429])

/** Runs the work of an operation, with access to the disk's reserve if the operation may use it. */
const within = <T>(operation: Operation | undefined, work: () => T): T =>
  operation?.usesReserve === true ? withReserve(work) : work()

function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return 'SUCCESS'
  return refusing.has(status) ? 'REFUSED' : 'FAILED'
}

/**
 * Records every call of an audited operation and every refusal of any other, once the outcome is known and before the
 * answer is sent. Audited operations are refused up front while the log accepts no entries.
 */
export function recordRequests(app: AppInstance, { log, refusals, store }: RecorderDependencies): void {
  const watched = new WeakMap<FastifyRequest, Watched>()
  const watch = (request: FastifyRequest): Watched => {
    const known = watched.get(request) ?? { name: null, envelope: null, replayed: false, recorded: false }
    watched.set(request, known)
    return known
  }

  async function record(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const audit = request.routeOptions.config.operation?.audit
    const outcome = outcomeOf(reply.statusCode)
    if (!audit && outcome !== 'REFUSED') return
    const seen = watch(request)
    if (seen.recorded) return
    seen.recorded = true
    const event = {
      actor: loggedIn(seen) ?? (await actorOf(request.caller, store)),
      ip: request.client,
      action: audit?.action ?? 'access.refuse',
      object: audit ? objectOf(request, audit, seen) : null,
      outcome,
      detail: await detailOf(request, reply, seen, store),
    }
    // Nothing was changed, so the answer stands even if the entry fails.
    if (outcome !== 'SUCCESS') return refusals.note(request.client, event).catch(() => undefined)
    await within(request.routeOptions.config.operation, () => log.append(event)).catch((cause: unknown) => {
      const what = `${request.method} ${request.url.split('?')[0] ?? ''}`
      throw new RsmError(
        'unavailable',
        `${what} was carried out, but its entry in the audit log could not be written`,
        { cause, retryAfter: 5 },
      )
    })
  }

  app.decorateRequest('started', undefined)
  app.addHook('onRoute', (route) => {
    const operation = route.config?.operation
    if (operation?.audit === undefined) return
    route.onRequest = [
      ...[route.onRequest ?? []].flat(),
      (_request, _reply, done) => {
        const refusal = within(operation, () => log.refusal)
        done(refusal === null ? undefined : new RsmError('unavailable', refusal, { retryAfter: 5 }))
      },
    ]
    route.preHandler = [
      // After the body has arrived, because its events would lose the async context.
      (_request, _reply, done) => within(operation, done),
      ...[route.preHandler ?? []].flat(),
      async (request, reply) => {
        request.started = (taskId, replayed) => {
          Object.assign(watch(request), { envelope: { data: { taskId } }, replayed })
          return record(request, reply)
        }
        watch(request).name = await nameInPath(request, store)
      },
    ]
    route.preSerialization = [
      ...[route.preSerialization ?? []].flat(),
      (request, _reply, payload, done) => {
        watch(request).envelope = asFields(payload)
        done(null, payload)
      },
    ]
    route.onSend = [...[route.onSend ?? []].flat(), async (request, reply) => record(request, reply)]
  })
  // Records refusals of any route. Heartbeats come through here too and must not cost a promise, so this calls `done`
  // for them and returns a promise for the rest; Fastify accepts both.
  app.addHook('preSerialization', (request, reply, payload, done) => {
    if (reply.statusCode >= 400) watch(request).envelope = asFields(payload)
    done(null, payload)
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!refusing.has(reply.statusCode)) return done(null, payload)
    return record(request, reply)
  })
}
