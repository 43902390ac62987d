import type { Log } from './log.ts'
import { type Member, type Ownership, renewEvery } from './seams/ownership.ts'

/** Joins the servers of a store as `name` and stays one until `leave`. */
export async function joinServers(
  ownership: Ownership,
  name: string,
  log: Log,
): Promise<{ member: Member; leave(): Promise<void> }> {
  const member = await ownership.join(name)
  const renewing = setInterval(() => {
    ownership.renew(member).then(
      (isMember) => {
        if (isMember) return
        clearInterval(renewing)
        log.error(
          { name },
          'another process has joined under the name of this server, which owns no task any more',
        )
      },
      // The lease is for this: whoever can't renew it loses its tasks to others.
      (error: unknown) => log.warn({ err: error }, 'the lease of this server could not be renewed'),
    )
  }, renewEvery)
  renewing.unref()
  return {
    member,
    leave() {
      clearInterval(renewing)
      return ownership.leave(member)
    },
  }
}
