import type { Member, Relay, TerminalSite } from '../../../src/server/storage/ports/cluster.ts'

/** A relay between servers of one process: each calls the sessions of the others. */
export function createLocalRelay(): Relay {
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
