import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { RsmError } from '../../../../core/errors.ts'
import { readCertificates } from '../../../../disk/certificates.ts'
import { repeat } from '../../../../disk/clock.ts'
import {
  type Place,
  passwordFor,
  refusedPooler,
  refusedStore,
  type StoreAddress,
  type StoreTls,
  tlsHint,
} from './address.ts'

/** Milliseconds after which PostgreSQL ends a statement. */
const statementTimeout = 10_000
/** Milliseconds to wait for an answer: longer than `statementTimeout`, for answers lost by a cut network. */
export const queryTimeout = 12_000
/** Milliseconds to wait for the peer to confirm the end of a connection. */
export const endPatience = 1_000
/** Milliseconds after which PostgreSQL ends the transaction of a stalled server, whose locks block others. */
const idleTimeout = 5_000

/** Closes the socket without a Terminate message. */
export const cut = (client: pg.Client) => void client.connection.stream.destroy()

/** Bounds `end`, because `pg` waits forever for a peer that does not close its side. */
export class Client extends pg.Client {
  override end(): Promise<void>
  override end(onEnd: (error: Error) => void): void
  override end(onEnd?: (error: Error) => void): Promise<void> {
    const timer = setTimeout(() => cut(this), endPatience)
    const ended = super.end().finally(() => clearTimeout(timer))
    // `pg` calls it without an error, contrary to its type.
    if (onEnd) void ended.then(() => onEnd(undefined as never))
    return ended
  }
}

const iso = (text: string) => new Date(text).toISOString()
/** Parsers by OID of the type. All numbers here stay below 2^53. */
const parsers = new Map<number, (text: string) => unknown>([
  [20, Number],
  [5069, Number],
  [1184, iso],
])
const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    return parsers.get(oid) ?? pg.types.getTypeParser(oid, format)
  },
}

/** `name`: the server, as pg_stat_activity shows it. `isPatient`: statements have no timeout. */
export function clientOptions(
  address: StoreAddress,
  place: Place,
  name: string,
  isPatient = false,
): pg.ClientConfig {
  const { user, database, password, tls, connectTimeout } = address
  return {
    host: place.host,
    port: place.port,
    user,
    database,
    // Called if PostgreSQL requires a password, because `pg` warns that its own support of ~/.pgpass will end.
    password: password ?? (() => passwordFor(address, place)),
    ssl: tlsOptions(tls, place),
    application_name: `rsm ${name}`.slice(0, 63),
    connectionTimeoutMillis: connectTimeout,
    ...(isPatient ? {} : { statement_timeout: statementTimeout, query_timeout: queryTimeout }),
    idle_in_transaction_session_timeout: idleTimeout,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    types,
  }
}

const tlsOptions = ({ mode, rootCert }: StoreTls, { host }: Place) =>
  mode === 'disable'
    ? false
    : {
        // SNI cannot hold an address, but a certificate may.
        ...(isIP(host) === 0 ? { servername: host } : { host }),
        rejectUnauthorized: mode === 'verify-full',
        // Validated at the start. If the file was replaced since, use its valid certificates.
        ...(rootCert === undefined
          ? {}
          : { ca: readCertificates(rootCert, () => {}), allowPartialTrustChain: true }),
      }

/**
 * Calls `late` after `patience` milliseconds, but first reads pending data, which after a stall of this
 * process may hold the answer. Returns a function that cancels the timeout.
 */
export function afterReading(patience: number, late: () => void): () => void {
  let isWaited = true
  const timer = setTimeout(() => setImmediate(() => isWaited && late()), patience)
  return () => {
    isWaited = false
    clearTimeout(timer)
  }
}

/** Settles as `work` does, or rejects after `patience` milliseconds like `pg`, whose own timeout ignores unread answers. */
export const inTime = <T>(patience: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const endWaiting = afterReading(patience, () => reject(new Error('Query read timeout')))
    void work.then(resolve, reject).finally(endWaiting)
  })

/** Milliseconds between two checks of a backend. */
const checkInterval = 10_000
/** Checks in a row that may fail before the cut, because PostgreSQL may come back and the statement continue. */
const mostMissed = 3

interface OtherConnections {
  ask(pool: 'api', statement: string, values: readonly unknown[]): Promise<object[]>
  readonly fault: string | null
}

/**
 * Cuts a connection whose backend is gone, which TCP does not report behind a cut network. Guards statements without a timeout.
 * Checks over another connection, because a backend answers one statement at a time.
 */
export async function watchBackend(
  client: pg.Client,
  database: OtherConnections,
  every = checkInterval,
): Promise<void> {
  const asked = client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = (await inTime(queryTimeout, asked)).rows[0]?.pid
  let missed = 0

  async function check(): Promise<void> {
    const found = await database.ask('api', 'select from pg_stat_activity where pid = $1', [pid])
    missed = 0
    if (found.length === 0) cut(client)
  }
  const checks = repeat(every, check, () => {
    // A late answer proves nothing about the connection.
    if (database.fault !== null && ++missed >= mostMissed) cut(client)
  })
  client.once('end', () => void checks.stop())
}

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
