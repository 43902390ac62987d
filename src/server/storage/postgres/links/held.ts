import type { LinkClaim } from '../../ports/cluster.ts'

/** Claims that are compared with the store at once. */
const atOnce = 2_000

interface Hold {
  claim: LinkClaim
  superseded: () => void
}

/** The claims of the links whose sockets this process has. */
export class Held {
  readonly #holds = new Map<number, Hold>()
  #nextAt = 0

  get(hostId: number): LinkClaim | undefined {
    return this.#holds.get(hostId)?.claim
  }

  /** Tells the former hold. */
  take(claim: LinkClaim, superseded: () => void): void {
    const former = this.#holds.get(claim.hostId)
    if (former && former.claim.epoch > claim.epoch) return superseded()
    this.#holds.set(claim.hostId, { claim, superseded })
    former?.superseded()
  }

  release({ hostId, epoch }: LinkClaim): void {
    if (this.get(hostId)?.epoch === epoch) this.#holds.delete(hostId)
  }

  /** A claim of this epoch stands: an older one of this process is none any more. */
  supersede(hostId: number, epoch: number): void {
    const hold = this.#holds.get(hostId)
    if (!hold || hold.claim.epoch >= epoch) return
    this.#holds.delete(hostId)
    hold.superseded()
  }

  all(): LinkClaim[] {
    return [...this.#holds.values()].map(({ claim }) => claim)
  }

  /** Some of them, so that each has its turn. */
  some(): LinkClaim[] {
    const all = this.all()
    if (this.#nextAt >= all.length) this.#nextAt = 0
    const turn = all.slice(this.#nextAt, this.#nextAt + atOnce)
    this.#nextAt += atOnce
    return turn
  }
}
