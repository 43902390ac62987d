import { normalUrl, readPin, showPin } from '../../core/endpoint.ts'
import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Enrollment } from '../../core/protocol/http/agent.ts'
import type { EnrollmentService } from '../../core/services.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { isoTime } from '../../disk/clock.ts'
import { newToken, stillAllowed } from '../access/credentials.ts'
import { storePage } from '../storage/paging.ts'
import type { EnrollmentRecord } from '../storage/records/host.ts'
import { type Context, type ForCallers, notFound } from './context.ts'

const defaultHours = 24
const defaultUses = 1

export function createEnrollments(context: Context): ForCallers<EnrollmentService> {
  const { store, clock, handedOut } = context
  return {
    async list(_, query) {
      const where = { equals: { name: query.name?.toLowerCase() } }
      return storePage(store, 'enrollments', query, { where }, (items) => items.map(toApi))
    },
    async create(caller, input) {
      const faults: FieldFault[] = []
      if (input.hostId !== undefined && !(await store.get('hosts', input.hostId)))
        faults.push({ field: 'hostId', message: unknownName('host', String(input.hostId), []) })
      const cluster = input.clusterId === undefined ? undefined : await store.get('clusters', input.clusterId)
      if (input.clusterId !== undefined && !cluster)
        faults.push({ field: 'clusterId', message: unknownName('cluster', String(input.clusterId), []) })
      if (cluster && cluster.selector !== null)
        faults.push({
          field: 'clusterId',
          message: 'is a dynamic cluster: its selector determines its hosts',
        })
      if (faults.length > 0) throw invalid(faults)
      const { token, tokenHash } = newToken('enrollment')
      // Before the token is stored, so that a failure leaves nothing behind.
      const joinInfo = await handedOut.joining.describe(token, checkedAddress(input))
      const now = clock.now()
      const record = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        const created: EnrollmentRecord = {
          id: await tx.nextId('enrollments'),
          name: input.name ?? null,
          tokenHash,
          maxUses: input.maxUses ?? defaultUses,
          uses: 0,
          tags: input.tags ?? {},
          clusterId: input.clusterId ?? null,
          hostId: input.hostId ?? null,
          createdBy: caller.username,
          createdAt: isoTime(now),
          expiresAt: isoTime(now + (input.expiresInHours ?? defaultHours) * 3600_000),
        }
        tx.put('enrollments', created)
        return created
      })
      return { ...toApi(record), token, ...joinInfo }
    },
    async remove(_, id) {
      await store.transact(async (tx) => {
        if (!(await tx.get('enrollments', id))) throw notFound('enrollment token', id)
        tx.remove('enrollments', id)
      })
      return { id }
    },
  }
}

function toApi(record: EnrollmentRecord): Enrollment {
  const { id, name, maxUses, uses, tags, clusterId, hostId, createdBy, createdAt, expiresAt } = record
  return { id, name, maxUses, uses, tags, clusterId, hostId, createdBy, createdAt, expiresAt }
}

interface Address {
  url?: string | undefined
  fingerprint?: string | undefined
}

/** Validates the server's address from a request; `prefix` is its path in the body. Errors: `invalid`. */
export function checkedAddress({ url, fingerprint }: Address, prefix = ''): Address {
  const faults: FieldFault[] = []
  function checked(field: string, read: () => string): string | undefined {
    try {
      return read()
    } catch (error) {
      faults.push({ field: `${prefix}${field}`, message: (error as Error).message })
      return undefined
    }
  }
  const address = {
    url: url === undefined ? undefined : checked('url', () => normalUrl(url)),
    fingerprint:
      fingerprint === undefined ? undefined : checked('fingerprint', () => showPin(readPin(fingerprint))),
  }
  if (faults.length > 0) throw invalid(faults)
  return address
}
