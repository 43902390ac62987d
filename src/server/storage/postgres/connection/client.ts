import { isIP } from 'node:net'
import pg from 'pg'
import { readCertificates } from '../../../../disk/certificates.ts'
import { type Place, passwordFor, type StoreAddress, type StoreTls } from './address.ts'

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
