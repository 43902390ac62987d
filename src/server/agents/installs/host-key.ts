import type { LocalFacts } from '../../storage/local-facts.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { HostRecord } from '../../storage/records/host.ts'

interface Parts {
  readonly store: Store
  readonly facts: LocalFacts
}

/** What is pinned of a host, and the way to judge the key that it shows. */
export interface PinnedKey {
  judge(key: string): Promise<string | null>
  /** What was pinned now, for this was the first time; null otherwise. */
  readonly taken: string | null
}

/**
 * The first key that a host shows is pinned, on disk before a credential leaves; another one is refused from then on (contract
 * §10), until an ADMIN forgets it.
 */
export function pinnedKey({ store, facts }: Parts, host: HostRecord): PinnedKey {
  const { id, hostname, ip, sshPort } = host
  let taken: string | null = null
  return {
    get taken() {
      return taken
    },
    async judge(key) {
      const pinned = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        // What was opened may not go where it was not meant for.
        if (!current || current.ip !== ip || current.sshPort !== sshPort) return null
        const before = current.hostKey ?? null
        if (before === null) tx.put('hosts', { ...current, hostKey: key })
        return { before }
      })
      if (pinned === null) return `${hostname} was changed or removed meanwhile; nothing was sent`
      if (pinned.before === null) {
        taken = key
        facts.publish('hostKeyPinned', { hostId: id, hostname, key })
        return null
      }
      if (pinned.before === key) return null
      return (
        `host key changed: ${pinned.before} is pinned, and ${key} was shown; nothing was sent. ` +
        `Once you know that it is the right host: rsm hosts edit ${hostname} --host-key ''`
      )
    },
  }
}
