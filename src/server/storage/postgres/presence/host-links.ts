import type { Neighbours } from '../ownership/ownership.ts'
import type { LinkSign } from './signs.ts'

/** The newest link of each host, wherever its socket is. */
export class HostLinks {
  readonly #links = new Map<number, LinkSign>()
  readonly #neighbours: Neighbours

  constructor(neighbours: Neighbours) {
    this.#neighbours = neighbours
  }

  get(hostId: number): LinkSign | null {
    return this.#links.get(hostId) ?? null
  }

  /** False, and nothing happens, where a newer one is known. */
  take(hostId: number, link: LinkSign): boolean {
    if (link.epoch < (this.#links.get(hostId)?.epoch ?? 0)) return false
    this.#links.set(hostId, link)
    return true
  }

  forget(hostId: number): void {
    this.#links.delete(hostId)
  }

  /** Whether its link is up, at a server that lives. */
  isConnected(hostId: number): boolean {
    const link = this.#links.get(hostId)
    if (!link?.isUp) return false
    return link.server === (this.#neighbours.own() ?? 0) || this.#neighbours.others().has(link.server)
  }

  all(): ReadonlyMap<number, LinkSign> {
    return this.#links
  }
}
