import type { Cluster } from '../../core/protocol/http/clusters.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { Store } from '../storage/ports/store.ts'

/** Notices when hosts enter or leave a dynamic cluster: nobody writes to the cluster then. */
export interface Memberships {
  /** The dynamic clusters whose members differ from those of the last call; the first call only looks. */
  changed(): Promise<Cluster[]>
  forget(): void
}

export function createMemberships(store: Store, fleet: Fleet): Memberships {
  let known: Map<number, string> | null = null
  return {
    async changed() {
      const dynamic = (await store.query('clusters')).items.filter(({ selector }) => selector !== null)
      const shown = dynamic.length === 0 ? [] : await fleet.showClusters(dynamic)
      const before = known
      known = new Map(shown.map(({ id, hostIds }) => [id, hostIds.join()]))
      // A cluster that is new here was told by whoever made it, or made it dynamic.
      return shown.filter(({ id, hostIds }) => {
        const former = before?.get(id)
        return former !== undefined && former !== hostIds.join()
      })
    },
    forget() {
      known = null
    },
  }
}
