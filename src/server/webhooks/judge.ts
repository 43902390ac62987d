import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { RsmError } from '../../core/errors.ts'
import { isLoopback } from '../../core/loopback.ts'

/** What `rsm server start` says of where webhooks may lead. */
export interface WebhookAllowance {
  /** Addresses and networks (CIDR) that are allowed whatever they are. */
  readonly allow?: readonly string[] | undefined
  /** Whether http to loopback is allowed; what is loopback is no global address and has to be in `allow` all the same. */
  readonly insecure?: boolean | undefined
  /** The environment variable that names a proxy for a URL: webhooks do not use it, and failed deliveries say so. */
  readonly proxyVariable?: ((url: URL) => string | undefined) | undefined
}

/** Where webhooks may lead: never into the network of the server itself, unless its administrator has said so (contract §16). */
export interface Judge {
  /** What is wrong with a URL that was given, or null: all that can be told without asking a name service. */
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

function unwrapped(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6) || !wrapping.some((range) => address.match(range))) return address
  return new ipaddr.IPv4(address.toByteArray().slice(-4))
}

const isIn = (address: Address, [network, bits]: Network): boolean =>
  address.kind() === network.kind() && (address as ipaddr.IPv4).match([network, bits])

const isGlobal = (address: Address): boolean =>
  address.range() === 'unicast' && (address instanceof ipaddr.IPv4 || address.match(globalSix))

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

/** Addresses of this machine as it is now. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))

/** The host of a URL without the brackets of IPv6. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** Errors: `usage` for an allowance that can't be read. */
export function createJudge({ allow = [], insecure = false }: WebhookAllowance): Judge {
  const allowed = allow.map(networkOf)

  function addressFault({ protocol }: URL, text: string): string | null {
    const address = unwrapped(ipaddr.process(text))
    const shown = address.toString()
    if (protocol === 'http:' && address.range() !== 'loopback')
      return `leads to ${shown} over http, where everybody on the way reads and changes it: use https`
    if (protocol === 'http:' && !insecure)
      return `leads to ${shown} over http: the server has to be started with --webhook-insecure`
    if (allowed.some((network) => isIn(address, network))) return null
    const hint = `the server has to be started with --webhook-allow ${shown}`
    if (!isGlobal(address)) return `leads to ${shown}, which is not a public address: ${hint}`
    const isOwn = ownAddresses().some((own) => unwrapped(ipaddr.process(own)).toString() === shown)
    return isOwn ? `leads to ${shown}, an address of the server itself: ${hint}` : null
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
