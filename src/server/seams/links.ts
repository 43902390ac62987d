import type { Member } from './ownership.ts'

/** A hold on the link of a host. Its epoch fences what is written for that link. */
export interface LinkClaim {
  readonly hostId: number
  readonly agentId: string
  /** The server that has the socket. */
  readonly server: Member
  /** Rises over all claims: of two claims the higher is the newer. */
  readonly epoch: number
  /** ISO 8601. */
  readonly since: string
}

/** What a claim has brought. */
export interface Claimed {
  readonly claim: LinkClaim
  /** This replacement showed that two agents have one identity: from now on new claims are refused. */
  readonly isDuplicate: boolean
}

/** Which server holds the link of which host. The newest claim holds it (contract §6, P12). */
export interface Links {
  /**
   * Null: refused, as two agents share the host's identity (P13). Else `superseded` is called once a newer claim holds the
   * host, which may be late: a server that writes for a link checks its claim in the same step.
   */
  claim(
    hostId: number,
    by: { server: Member; agentId: string },
    superseded: () => void,
  ): Promise<Claimed | null>
  /** The host can be sent something over this link: an agent of ours has said HELLO. Nothing happens to a newer claim. */
  ready(claim: LinkClaim): Promise<void>
  /** The link is gone; nothing happens to a newer claim. */
  release(claim: LinkClaim): Promise<void>
  /** Null when no link stands at a server that lives. */
  holder(hostId: number): Promise<LinkClaim | null>
  /** Of links that are ready; the other hosts are left out. */
  holders(hostIds: readonly number[]): Promise<Map<number, LinkClaim>>
  /**
   * Whether new claims of the host are refused, as far as this server knows at once; `claim` decides. Three replacements within
   * a minute are two agents with one identity: for five minutes the one that holds the link keeps it (P13, reliability F12).
   */
  refuses(hostId: number): boolean
  /** Called every few seconds: ends refusals whose time is over, and answers their hosts, each to one server only. */
  expire(): Promise<number[]>
}
