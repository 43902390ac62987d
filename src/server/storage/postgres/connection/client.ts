import { isIP } from 'node:net'
import pg from 'pg'
import { readCertificates } from '../../../../disk/certificates.ts'
import { type Place, passwordFor, type StoreAddress, type StoreTls } from './address.ts'

/** Milliseconds: PostgreSQL ends a statement that takes longer … */
const statementTimeout = 10_000
/** … and this side stops waiting for one whose answer does not come, as behind a cut network. */
export const queryTimeout = 12_000
/** Milliseconds until this side cuts a connection whose end the peer does not confirm. */
export const endPatience = 1_000
/** Of a transaction whose server stands still: the locks that it holds keep others waiting until then. */
const idleTimeout = 5_000

/** Closes the socket without a Terminate message. */
export const cut = (client: pg.Client) => void client.connection.stream.destroy()

/** A connection whose end is bounded: `pg` waits forever for a peer that does not close its side. */
export class Client extends pg.Client {
  override end(): Promise<void>
  override end(onEnd: (error: Error) => void): void
  override end(onEnd?: (error: Error) => void): Promise<void> {
    const timer = setTimeout(() => cut(this), endPatience)
    const ended = super.end().finally(() => clearTimeout(timer))
    // `pg` calls it without an error, whatever its type says.
    if (onEnd) void ended.then(() => onEnd(undefined as never))
    return ended
  }
}

const iso = (text: string) => new Date(text).toISOString()
/** By the OID of the type. All numbers here stay below 2^53. */
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

/**
 * What a connection to this place is made with. `name`: of the server, as pg_stat_activity shows it; `isPatient`: statements
 * take as long as they take.
 */
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
    // Asked where PostgreSQL wants one; `pg` itself reads ~/.pgpass with a warning that it will not do so any more.
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
        // SNI has no addresses; a certificate may still name one.
        ...(isIP(host) === 0 ? { servername: host } : { host }),
        rejectUnauthorized: mode === 'verify-full',
        // Checked at the start; if the file was replaced since, its valid certificates count.
        ...(rootCert === undefined
          ? {}
          : { ca: readCertificates(rootCert, () => {}), allowPartialTrustChain: true }),
      }

/**
 * Calls `late` after so many milliseconds, once what has arrived until then is read: where this process has stood still, that may be
 * what was waited for. Answers how to wait no longer.
 */
export function afterReading(patience: number, late: () => void): () => void {
  let isWaited = true
  const timer = setTimeout(() => setImmediate(() => isWaited && late()), patience)
  return () => {
    isWaited = false
    clearTimeout(timer)
  }
}

/** Settles as `work` does, or rejects after `patience` milliseconds as `pg` does, whose own timeout overlooks unread answers. */
export const inTime = <T>(patience: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const endWaiting = afterReading(patience, () => reject(new Error('Query read timeout')))
    void work.then(resolve, reject).finally(endWaiting)
  })
