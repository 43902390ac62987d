import type { Member } from '../seams/ownership.ts'
import type { Relay, TerminalSite } from '../seams/relay.ts'

/** Between servers of one process: each calls the other's sessions. */
export function createRelay(): Relay {
  const served = new Map<string, { member: Member; site: TerminalSite }>()
  return {
    serve(member, site) {
      const own = { member, site }
      served.set(member.name, own)
      return () => {
        if (served.get(member.name) === own) served.delete(member.name)
      }
    },
    async at({ name, epoch }) {
      const found = served.get(name)
      return found?.member.epoch === epoch ? found.site : null
    },
    async having(sessionId) {
      for (const { site } of served.values()) if (await site.has(sessionId)) return site
      return null
    },
  }
}
