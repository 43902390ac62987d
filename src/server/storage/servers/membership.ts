import { RsmError } from '../../../core/errors.ts'
import type { Clock } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import { repeat } from '../../../disk/repeat.ts'
import { lease, type Member, type Ownership, renewEvery } from '../ports/cluster.ts'

/** This server among those of its store, from its start to its stop. */
export interface Membership {
  readonly member: Member
  /** Milliseconds since its lease was last renewed, by its own monotonic clock. */
  sinceRenewed(): number
  /** Whether the lease holds, so that nobody has taken over what this server owns. */
  holds(): boolean
  /** Resolves with why this process must stop: another one has joined under its name, or the store is a newer rsm's. */
  readonly fenced: Promise<RsmError>
  leave(): Promise<void>
}

/** Joins the servers of a store as `name` and stays one until `leave`. */
export async function joinServers(
  ownership: Ownership,
  name: string,
  { clock, log }: { clock: Clock; log: Log },
): Promise<Membership> {
  let renewedAt = clock.monotonic()
  const member = await ownership.join(name)
  let isFailing = false
  let markFenced: (why: RsmError) => void = () => undefined
  const fenced = new Promise<RsmError>((resolve) => {
    markFenced = resolve
  })
  function fence(why: RsmError): void {
    void renewing.stop()
    log.error({ name }, `${why.message}: this server ends`)
    markFenced(why)
  }
  async function renew(): Promise<void> {
    if (await ownership.renew(member)) {
      if (isFailing) log.info({ name }, 'the lease of this server is renewed again')
      isFailing = false
      return
    }
    const hint = 'give each server of the store its own --server-name'
    fence(new RsmError('conflict', `another server has taken the name ${name}`, { hint }))
  }
  const renewing = repeat(renewEvery, renew, (error) => {
    if (error instanceof RsmError && error.code === 'conflict') return fence(error)
    // A server whose lease ends loses its tasks to others.
    if (!isFailing) log.warn({ err: error }, 'the lease of this server cannot be renewed; trying again')
    isFailing = true
  })
  function sinceRenewed(): number {
    // A connection to the store that is made again renews the lease at once, before the next turn of the timer.
    renewedAt = ownership.renewedAt(member) ?? renewedAt
    return clock.monotonic() - renewedAt
  }
  return {
    member,
    sinceRenewed,
    holds: () => sinceRenewed() < lease,
    fenced,
    leave() {
      void renewing.stop()
      return ownership.leave(member)
    },
  }
}
