import { readFileSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isLoopback } from '../../../../core/endpoint.ts'
import { RsmError } from '../../../../core/errors.ts'
import { readCertificates } from '../../../../disk/certificates.ts'
import { isMissing } from '../../../../disk/durable.ts'
import { retryAfter } from './failure.ts'

/** One of the hosts in the URL. */
export interface Place {
  readonly host: string
  readonly port: number
}

export interface StoreAddress {
  readonly places: readonly Place[]
  readonly user: string
  readonly database: string
  /** If undefined, looked up in ~/.pgpass. */
  readonly password: string | undefined
  readonly tls: StoreTls
  /** Milliseconds, for each place. */
  readonly connectTimeout: number
}

/**
 * As in libpq, but `verify-full` is the default for remote hosts. `require` accepts any certificate;
 * `verify-full` checks it and the host name.
 */
export interface StoreTls {
  readonly mode: 'disable' | 'require' | 'verify-full'
  /** PEM file of CAs; if undefined, the system's CAs. */
  readonly rootCert: string | undefined
}

const example = 'postgres://rsm@pg1,pg2/rsm'
const defaultPort = 5432
const modes = ['disable', 'require', 'verify-full'] as const
const known = ['sslmode', 'sslrootcert', 'connect_timeout']
const defaultConnectTimeout = '5'

/** Hint if a remote PostgreSQL offers no TLS or an untrusted certificate. */
export const tlsHint =
  'enable TLS in PostgreSQL and omit sslmode, so that the certificate is checked (sslrootcert=FILE for a CA of your own); or allow plain text with --insecure-store'

/**
 * Parses
 * `postgres://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE[?sslmode=…&sslrootcert=FILE&connect_timeout=SECONDS]`.
 * The first line of `passwordFile` is the password, because `ps` would show one in the URL. `insecure` allows
 * plain text to remote hosts.
 * @throws RsmError `usage`
 */
export function readStoreAddress(
  url: string,
  passwordFile: string | undefined,
  insecure = false,
): StoreAddress {
  // `URL` accepts only one host.
  const parts = /^postgres(?:ql)?:\/\/(?:([^@/?]*)@)?([^/?@]*)(?:\/([^/?]*))?(?:\?(.*))?$/.exec(url)
  if (!parts) throw refuse('--store is not a PostgreSQL URL')
  const [, login = '', hosts = '', database = '', query = ''] = parts
  const parameters = new URLSearchParams(query)
  if (login.includes(':') || parameters.has('password'))
    throw new RsmError('usage', '--store holds a password, which ps would show to everyone', {
      hint: 'put it into a file for --store-password-file, or into ~/.pgpass',
    })
  if (login === '') throw refuse('--store has no user')
  if (database === '') throw refuse('--store has no database')
  const places = hosts.split(',').map(placeOf)
  const unknown = [...parameters.keys()].find((name) => !known.includes(name))
  if (unknown !== undefined) throw refuse(`unknown parameter in --store: ${unknown}; use ${known.join(', ')}`)
  const password = passwordFile === undefined ? undefined : readPassword(passwordFile)
  const [tls, connectTimeout] = [tlsOf(parameters, places, insecure), timeoutOf(parameters)]
  return { places, user: decode(login), database: decode(database), password, tls, connectTimeout }
}

const refuse = (message: string) => new RsmError('usage', message, { hint: `use a URL like ${example}` })

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refuse(`invalid escape in --store: ${text}`)
  }
}

function placeOf(text: string): Place {
  const parts = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text)
  const port = Number(parts?.[2] ?? defaultPort)
  if (!parts?.[1]) throw refuse(text === '' ? '--store has no host' : `invalid host in --store: ${text}`)
  if (port < 1 || port > 65535) throw refuse(`invalid port in --store: ${port}`)
  return { host: decode(parts[1].replace(/^\[|\]$/g, '')), port }
}

/** Requires TLS to remote hosts, because a party that can change this traffic can run scripts on every host. */
function tlsOf(parameters: URLSearchParams, places: readonly Place[], insecure: boolean): StoreTls {
  // A host that begins with a slash is the directory of a Unix socket.
  const remote = places.find(({ host }) => !isLoopback(host) && !host.startsWith('/'))
  const given = parameters.get('sslmode') ?? (remote && !insecure ? 'verify-full' : 'disable')
  const mode = modes.find((one) => one === given)
  if (!mode) throw refuse(`unknown sslmode in --store: ${given}; use ${modes.join(', ')}`)
  if (mode === 'disable' && remote && !insecure)
    throw new RsmError('usage', `--store has sslmode=disable for ${remote.host}, which is not this machine`, {
      hint: tlsHint,
    })
  const rootCert = parameters.get('sslrootcert') ?? undefined
  try {
    if (rootCert !== undefined) readCertificates(rootCert)
  } catch (error) {
    throw new RsmError('usage', `sslrootcert in --store: ${(error as Error).message}`, {
      hint: 'use a PEM file of certificates that the user of the server can read',
    })
  }
  return { mode, rootCert }
}

function timeoutOf(parameters: URLSearchParams): number {
  const given = parameters.get('connect_timeout') ?? defaultConnectTimeout
  if (!/^[1-9]\d{0,2}$/.test(given))
    throw refuse(`invalid connect_timeout in --store: ${given}; use 1 to 999 seconds`)
  return Number(given) * 1000
}

function readPassword(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new RsmError('usage', `--store-password-file ${file} cannot be read: ${(error as Error).message}`)
  }
  const [password = ''] = text.split(/\r?\n/)
  if (password === '') throw new RsmError('usage', `--store-password-file ${file} has an empty first line`)
  return password
}

/** Formats the address for people, without a password. */
export const displayAddress = ({ places, user, database }: StoreAddress): string =>
  `postgres://${user}@${places.map(({ host, port }) => `${host}:${port}`).join(',')}/${database}`

/** Error for an unusable store, at the start or later if it was moved, changed or made a standby. */
export const refusedStore = (address: StoreAddress, message: string, hint?: string): RsmError =>
  new RsmError('unavailable', `${displayAddress(address)}: ${message}`, {
    retryAfter,
    ...(hint === undefined ? {} : { hint }),
  })

/** Refuses session mode too: such a pooler rejects the startup timeouts, and servers pool their connections anyway. */
export const refusedPooler = (address: StoreAddress): RsmError =>
  refusedStore(
    address,
    'a pooler such as pgbouncer answers there, but rsm needs PostgreSQL itself',
    'use the port of PostgreSQL itself, usually 5432',
  )

/** HOST:PORT:DATABASE:USER:PASSWORD; a backslash escapes a colon or a backslash. */
const pgpassLine = /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/
const unescaped = (field: string) => field.replaceAll(/\\(.)/g, '$1')

/**
 * Finds the password for this place in the first matching line of ~/.pgpass, or of the file in `PGPASSFILE`.
 * As in libpq, `*` matches everything, and a file that others may read is not used.
 * @throws RsmError `unavailable` if there is no password, because this is called only if PostgreSQL requires
 * one
 */
export async function passwordFor(address: StoreAddress, { host, port }: Place): Promise<string> {
  const file = process.env['PGPASSFILE'] ?? join(homedir(), '.pgpass')
  const refusal = (why: string, hint = 'give the password with --store-password-file, or in ~/.pgpass') =>
    refusedStore(address, `${host}:${port} asks for a password, and ${why}`, hint)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error)) return ''
    throw refusal(`${file} cannot be read: ${error.message}`)
  })
  if (text !== '' && ((await stat(file)).mode & 0o077) !== 0)
    throw refusal(`${file} is not used, as others may read it`, `chmod 600 ${file}`)
  const wanted = [host, String(port), address.database, address.user]
  for (const entry of text.split(/\r?\n/)) {
    const [, ...fields] = entry.startsWith('#') ? [] : (pgpassLine.exec(entry) ?? [])
    const password = unescaped(fields.pop() ?? '')
    const fits = (value: string, at: number) => fields[at] === '*' || unescaped(fields[at] ?? '') === value
    if (password !== '' && wanted.every(fits)) return password
  }
  throw refusal(`neither --store-password-file nor ${file} has one for it`)
}
