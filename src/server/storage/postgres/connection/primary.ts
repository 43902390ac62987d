import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import { type Place, refusedPooler, refusedStore, type StoreAddress, tlsHint } from './address.ts'
import { Client, clientOptions } from './client.ts'

/** Oldest tested version. */
export const oldestVersion = 15
/** SQLSTATEs that a retry cannot fix: of a role, a password or a database. */
const refusals = new Set(['28000', '28P01', '3D000', '42501'])

/** `server_version`, which PostgreSQL sends while connecting; empty until then. */
function versionOf(client: pg.Client): () => string {
  let version = ''
  client.connection.on('parameterStatus', (status: { parameterName: string; parameterValue: string }) => {
    if (status.parameterName === 'server_version') version = status.parameterValue
  })
  return () => version
}

async function isReadOnly(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ read_only: boolean }>(
    `select pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as read_only`,
  )
  return rows[0]?.read_only === true
}

/** Why this place is not the primary; null if it is. */
async function faultOf(address: StoreAddress, place: Place, name: string): Promise<string | null> {
  const client = new Client(clientOptions(address, place, name))
  client.on('error', () => undefined)
  const version = versionOf(client)
  try {
    await client.connect()
    if (Number.parseInt(version(), 10) < oldestVersion)
      throw refusedStore(
        address,
        `PostgreSQL ${version()} is too old: rsm needs ${oldestVersion} or newer`,
        'upgrade it with pg_upgradecluster or pg_dump, then start rsm again',
      )
    return (await isReadOnly(client)) ? 'it is a standby or read-only' : null
  } catch (error) {
    if (error instanceof RsmError) throw error
    const { message, code } = error as Error & { code?: string }
    // The first error of pgbouncer with its default settings.
    if (message.includes('unsupported startup parameter')) throw refusedPooler(address)
    if (code !== undefined && refusals.has(code)) throw refusedStore(address, message, hintOf(code))
    return message || (code ?? 'no answer')
  } finally {
    await client.end()
  }
}

const hintOf = (code: string): string =>
  code === '3D000'
    ? 'create it with createdb, owned by the user of the URL'
    : 'give the password with --store-password-file, or in ~/.pgpass, and check pg_hba.conf'

/** Milliseconds to wait for the other hosts once one takes writes, because a lost machine never answers. */
const patience = 300

/**
 * Finds the first host that takes writes, like `target_session_attrs=read-write` of libpq, but tries all at once.
 * @throws RsmError `unavailable`, with the answer of each host
 */
export async function findPrimary(address: StoreAddress, name: string): Promise<Place> {
  const asked = address.places.map((place) => ({ place, answer: faultOf(address, place, name) }))
  const writable = asked.map(async ({ answer }) => {
    if ((await answer) !== null) throw new Error('it takes no writes')
  })
  const late = Promise.any(writable).then(() => delay(patience, 'no answer', { ref: false }))
  const faults: string[] = []
  for (const { place, answer } of asked) {
    // If none takes writes, wait for all of them.
    const fault = await Promise.race([answer, late.catch(() => answer)])
    if (fault === null) return place
    faults.push(`${place.host}:${place.port}: ${fault}`)
  }
  const isOfTls = address.tls.mode !== 'disable' && faults.some((fault) => /SSL|certificate/.test(fault))
  throw refusedStore(address, `no host takes writes (${faults.join('; ')})`, isOfTls ? tlsHint : undefined)
}
