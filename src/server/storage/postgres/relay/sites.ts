import type { Member } from '../../ports/cluster.ts'
import type { Wire } from './wire.ts'

/** Where the terminal sessions of a server are reached. */
export interface SiteAddress {
  readonly epoch: number
  readonly wire: number
  /** Its lease is over, though it has not left: it may stand still. */
  readonly isLapsed: boolean
}

const lapsed = 'exists (select from rsm.servers v where v.epoch = s.epoch and v.lease_until < rsm.now())'

export async function noteSite(wire: Wire, { name, epoch }: Member): Promise<void> {
  // In one statement: a site is never gone while it moves to another wire.
  await wire.ask(
    `with dead as (delete from rsm.relay_sites where epoch <> $1 and wire not in (select rsm.relay_wires()))
     insert into rsm.relay_sites(epoch, server, wire) values ($1, $2, $3)
     on conflict (epoch) do update set wire = excluded.wire`,
    [epoch, name, wire.id],
  )
}

export async function removeSite(wire: Wire, { epoch }: Member): Promise<void> {
  await wire.ask('delete from rsm.relay_sites where epoch = $1 and wire = $2', [epoch, wire.id])
}

/** Those whose process lives; `epoch` null: of all servers. */
export function findSites(wire: Wire, epoch: number | null): Promise<SiteAddress[]> {
  return wire.ask<SiteAddress>(
    `select s.epoch, s.wire, ${lapsed} as "isLapsed" from rsm.relay_sites s
     where s.wire in (select rsm.relay_wires()) and ($1::bigint is null or s.epoch = $1)`,
    [epoch],
  )
}

/** Which of these wires are dead, or of servers whose lease is over: those may go on. */
export function findLost(wire: Wire, peers: readonly number[]): Promise<{ peer: number; isDead: boolean }[]> {
  return wire.ask(
    `select peer, is_dead as "isDead" from unnest($1::bigint[]) as peers(peer)
       cross join lateral (select peer not in (select rsm.relay_wires()) as is_dead) d
     where is_dead or exists (select from rsm.relay_sites s where s.wire = peer and ${lapsed})`,
    [peers],
  )
}
