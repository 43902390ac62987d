import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isLoopback } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { Semaphore } from '../../core/mutex.ts'

/** Options of `rsm server start` for the targets of webhooks. */
export interface WebhookAllowance {
  /** Addresses and networks (CIDR) that are allowed whatever they are. */
  readonly allow?: readonly string[] | undefined
  /** Whether http to loopback is allowed; loopback is not a global address, so it has to be in `allow` too. */
  readonly insecure?: boolean | undefined
  /** The environment variable that names a proxy for a URL: webhooks do not use it, and failed deliveries say so. */
  readonly proxyVariable?: ((url: URL) => string | undefined) | undefined
}

/** Judges the targets of webhooks: never into the network of the server itself, unless its administrator has said so (contract §16). */
export interface Judge {
  /** The fault of a URL, or null, as far as it can be judged without a name service. */
  urlFault(url: string): string | null
  /** Why nothing may be sent to this address by this URL, or null. */
  addressFault(url: URL, address: string): string | null
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = readonly [Address, number]

/** IPv6 ranges whose last 32 bits are the IPv4 address that is meant: mapped ones, and NAT64 (RFC 6052 §2.1). */
const wrapping = [ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), ipaddr.IPv6.parseCIDR('64:ff9b::/96')]
/** All that is given out for global unicast (RFC 4291 §2.4, IANA). */
const globalSix = ipaddr.IPv6.parseCIDR('2000::/3')

/** Errors: `usage` for an allowance that can't be read. */
export function createJudge({ allow = [], insecure = false }: WebhookAllowance): Judge {
  const allowed = allow.map(networkOf)

  function addressFault({ protocol }: URL, text: string): string | null {
    const address = unwrapped(ipaddr.process(text))
    const addressText = address.toString()
    if (protocol === 'http:' && address.range() !== 'loopback')
      return `leads to ${addressText} over http, where everybody on the way reads and changes it: use https`
    if (protocol === 'http:' && !insecure)
      return `leads to ${addressText} over http: the server has to be started with --webhook-insecure`
    if (allowed.some((network) => isIn(address, network))) return null
    const hint = `the server has to be started with --webhook-allow ${addressText}`
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
      if (url.username !== '' || url.password !== '') return 'takes no user and password in it'
      if (url.protocol === 'http:' && !(insecure && isLoopback(url.hostname)))
        return isLoopback(url.hostname)
          ? 'takes http to this machine only where the server was started with --webhook-insecure; use https'
          : 'takes https, because others can read and change http on its way'
      const host = hostOf(url)
      return isIP(host) === 0 ? null : addressFault(url, host)
    },
  }
}

/** @throws RsmError `usage` for what is neither an address nor a network. */
function networkOf(text: string): Network {
  const trimmed = text.trim()
  try {
    if (trimmed.includes('/')) return ipaddr.parseCIDR(trimmed)
    // The library reads 10 as 0.0.0.10.
    if (isIP(trimmed) === 0) throw new Error('no address')
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

/** Addresses of this machine as it is now. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))

/** The host of a URL without the brackets of IPv6. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** An address that was judged: the socket goes there, whatever the name says a moment later. */
export interface JudgedAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Answers all addresses of a name. Errors: those of dns(3). */
export type Resolve = (
  host: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>

export const systemResolve: Resolve = (host) => lookup(host, { all: true })

/**
 * Names that are looked up at a time. The system does it in threads that files need, too, of which there are four: a name
 * service that never answers must not hold up what waits for the disk.
 */
const lookupsAtOnce = 2

/** Each webhook sends one at a time; beside that there are tests. */
const mostLookups = 200

export const lookups = new Semaphore(lookupsAtOnce)

/**
 * The addresses that a URL leads to, all of them judged. One that is refused refuses them all: which of them a client gets
 * is not for us to say. Throws an Error that says which, or that there is none. What waits to be looked up ends with `signal`.
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
  if (lookups.queueLength >= mostLookups) throw new Error(`${mostLookups} others wait for the same`)
  return lookups.run(() => resolve(host), signal)
}
