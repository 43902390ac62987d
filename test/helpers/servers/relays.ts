import { randomBytes } from 'node:crypto'
import type { ExecutionContext } from 'ava'
import { createLog, type Log } from '../../../src/disk/log.ts'
import { createKeys, newSigningKey } from '../../../src/server/storage/keys/keys.ts'
import type { Member } from '../../../src/server/storage/ports/cluster.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { createRelay } from '../../../src/server/storage/postgres/relay/relay.ts'
import { openDatabase } from './open-database.ts'

/** Of all servers of a test. */
export const sharedKeyFiles = [randomBytes(32), newSigningKey()] as const
const sharedKeys = createKeys(...sharedKeyFiles)
/** For other processes. */
export const sharedKeysAsText = sharedKeyFiles.map((bytes) => bytes.toString('base64')).join(' ')

/** The relay of a server `name`; closed with the test. `faults`: what it tells its log of faults. */
export function openRelay(t: ExecutionContext, url: string, name: string) {
  const database = openDatabase(t, url, name)
  const faults: string[] = []
  const error: Log['error'] = (_: unknown, message?: string) => void faults.push(message ?? '')
  const log: Log = { ...createLog('ERROR'), error }
  const relay = createRelay({ database, keys: sharedKeys, log })
  t.teardown(() => relay.close())
  return { database, relay, faults }
}

/** A life of a server, as `rsm.servers` has it. */
export async function joined(database: Database, name: string): Promise<Member> {
  const [row] = await database.ask<{ epoch: number }>(
    'api',
    `insert into rsm.servers(name, epoch, lease_until, joined_at, version)
     values ($1, nextval('rsm.epochs'), rsm.now() + interval '1 hour', rsm.now(), '1')
     on conflict (name) do update set epoch = excluded.epoch returning epoch`,
    [name],
  )
  return { name, epoch: row?.epoch ?? 0 }
}
