import { type Clock, isoTime } from '../../../disk/clock.ts'
import { newToken } from '../../access/tokens.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { HostRecord } from '../../storage/records/host.ts'

/** Milliseconds: what was begun on a host may still need it after the task has given up. */
const life = 3600_000

/** A single-use enrollment token for a host that there is (contract §3). */
export interface HostToken {
  /** Of its record. */
  readonly id: number
  readonly token: string
  /** For one that nobody needs any more; one that was used stays. */
  drop(): Promise<void>
}

export async function hostToken(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { id: hostId, hostname }: HostRecord,
  createdBy: string,
): Promise<HostToken> {
  const { token, tokenHash } = newToken('enrollment')
  const now = clock.now()
  const id = await store.transact(async (tx) => {
    const id = await tx.nextId('enrollments')
    tx.put('enrollments', {
      id,
      name: `install of ${hostname}`,
      tokenHash,
      maxUses: 1,
      uses: 0,
      tags: {},
      clusterId: null,
      hostId,
      createdBy,
      createdAt: isoTime(now),
      expiresAt: isoTime(now + life),
    })
    return id
  })
  return {
    id,
    token,
    drop: () =>
      store.transact(async (tx) => {
        if ((await tx.get('enrollments', id))?.uses === 0) tx.remove('enrollments', id)
      }),
  }
}
