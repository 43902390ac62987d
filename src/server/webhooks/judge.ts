import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isLoopback } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { Semaphore } from '../../core/mutex.ts'

/** Options of `rsm server start` for webhook targets. */
export interface WebhookAllowance {
  /** Addresses and networks (CIDR) that are always allowed. */
  readonly allow?: readonly string[] | undefined
  /** Allows http to loopback, which must be in `allow` too, because it is not a public address. */
  readonly insecure?: boolean | undefined
  /** Environment variable with a proxy for a URL: webhooks ignore it, and failed deliveries say so. */
  readonly proxyVariable?: ((url: URL) => string | undefined) | undefined
}

/** Validates webhook targets: the server's own network is refused unless allowed (contract §16). */
export interface Judge {
  /** The fault of a URL, or null, as far as it can be checked without DNS. */
  urlFault(url: string): string | null
  /** Why an address of this URL is refused, or null. */
  addressFault(url: URL, address: string): string | null
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = readonly [Address, number]

/** IPv6 ranges whose last 32 bits are an IPv4 address: mapped ones, and NAT64 (RFC 6052 §2.1). */
const wrapping = [ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), ipaddr.IPv6.parseCIDR('64:ff9b::/96')]
/** The range assigned for global unicast (RFC 4291 §2.4, IANA). */
const globalSix = ipaddr.IPv6.parseCIDR('2000::/3')

/** Errors: `usage` for an invalid allowance. */
export function createJudge({ allow = [], insecure = false }: WebhookAllowance): Judge {
  const allowed = allow.map(networkOf)

  function addressFault({ protocol }: URL, text: string): string | null {
    const address = unwrapped(ipaddr.process(text))
    const addressText = address.toString()
    if (protocol === 'http:' && address.range() !== 'loopback')
      return `leads to ${addressText} over http, which others can read and change in transit: use https`
    if (protocol === 'http:' && !insecure)
      return `leads to ${addressText} over http: the server must be started with --webhook-insecure`
    if (allowed.some((network) => isIn(address, network))) return null
    const hint = `the server must be started with --webhook-allow ${addressText}`
    if (!isGlobal(address)) return `leads to ${addressText}, which is not a public address: ${hint}`
    const isOwn = ownAddresses().some((own) => unwrapped(ipaddr.process(own)).toString() === addressText)
    return isOwn ? `leads to ${addressText}, an address of the server itself: ${hint}` : null
  }

  return {
    addressFault,
    urlFault(text) {
      const url = URL.canParse(text) ? new URL(text) : null
      if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
        return 'must be like https://alerts.example.org/rsm'
      if (url.username !== '' || url.password !== '') return 'must not contain a user or password'
      if (url.protocol === 'http:' && !(insecure && isLoopback(url.hostname)))
        return isLoopback(url.hostname)
          ? 'allows http to this machine only with --webhook-insecure of the server; use https'
          : 'must use https, because others can read and change http in transit'
      const host = hostOf(url)
      return isIP(host) === 0 ? null : addressFault(url, host)
    },
  }
}

/** @throws RsmError `usage` if it is neither an address nor a network */
function networkOf(text: string): Network {
  const trimmed = text.trim()
  try {
    if (trimmed.includes('/')) return ipaddr.parseCIDR(trimmed)
    // The library parses 10 as 0.0.0.10.
    if (isIP(trimmed) === 0) throw new Error('not an address')
    return [ipaddr.parse(trimmed), isIP(trimmed) === 4 ? 32 : 128]
  } catch (cause) {
    throw new RsmError('usage', `--webhook-allow takes an address or a network, not ${text}`, {
      hint: 'as 10.0.0.5, 10.0.0.0/24 or 2001:db8::/64',
      cause,
    })
  }
}

function unwrapped(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6) || !wrapping.some((range) => address.match(range))) return address
  return new ipaddr.IPv4(address.toByteArray().slice(-4))
}

const isIn = (address: Address, [network, bits]: Network): boolean =>
  address.kind() === network.kind() && (address as ipaddr.IPv4).match([network, bits])

const isGlobal = (address: Address): boolean =>
  address.range() === 'unicast' && (address instanceof ipaddr.IPv4 || address.match(globalSix))

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))

/** Host of a URL, without the brackets of IPv6. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** A validated address: the socket connects to it, whatever DNS answers later. */
export interface JudgedAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Resolves all addresses of a name. Errors: those of dns(3). */
export type Resolve = (
  host: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>

export const systemResolve: Resolve = (host) => lookup(host, { all: true })

/** Parallel DNS lookups. They share four threads with file I/O, and a hung DNS server must not take all. */
const lookupsAtOnce = 2

/** Queued lookups. Each webhook sends one at a time; tests add more. */
const mostLookups = 200

export const lookups = new Semaphore(lookupsAtOnce)

/**
 * Validates all addresses of a URL; one refused address refuses all, because the client may pick any. Throws
 * an Error with the reason. `signal` aborts queued lookups.
 */
export async function judgedAddresses(
  { judge, resolve }: { readonly judge: Judge; readonly resolve: Resolve },
  url: URL,
  signal: AbortSignal,
): Promise<readonly JudgedAddress[]> {
  const host = hostOf(url)
  const found = isIP(host)
    ? [{ address: host, family: isIP(host) }]
    : await resolved(resolve, host, signal).catch((error: NodeJS.ErrnoException) => {
        throw new Error(`${host} cannot be looked up: ${error.code ?? error.message}`, { cause: error })
      })
  for (const { address } of found) {
    const fault = judge.addressFault(url, address)
    if (fault !== null) throw new Error(`the URL ${fault}`)
  }
  if (found.length === 0) throw new Error(`${host} has no address`)
  return found as readonly JudgedAddress[]
}

async function resolved(resolve: Resolve, host: string, signal: AbortSignal): ReturnType<Resolve> {
  if (lookups.queueLength >= mostLookups) throw new Error(`${mostLookups} other lookups are queued`)
  return lookups.run(() => resolve(host), signal)
}
