import { BlockList, isIP } from 'node:net'
import { RsmError } from '../core/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Receives a sentence about a setting that is partly ignored. */
export type Warn = (text: string) => void

/** The variable in effect, lower case first; an empty one counts as unset, as in curl. */
function variable(environment: Environment, name: string): readonly [name: string, value: string] | null {
  for (const each of [name.toLowerCase(), name]) {
    const value = environment[each]
    if (value) return [each, value]
  }
  return null
}

/**
 * Whether an entry of NO_PROXY matches the server: `*`, `host` with its subdomains, `.domain`, an address or
 * network, as in curl; each may have a port: `host:443`, `10.0.0.0/8:443`, `[fd00::/8]:443`. Null for a
 * malformed entry.
 */
function isNamedBy(entry: string, url: URL): boolean | null {
  if (entry === '*') return true
  const parts = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+):(\d+)$/.exec(entry) ?? ['', entry]
  const [, name = '', only] = parts
  const host = bareHost(url).toLowerCase().replace(/\.$/, '')
  const family = isIP(host)
  const isOfPort = only === undefined || Number(only) === portOf(url)
  const [, address = name, bits] = /^([^/]+)\/(\d+)$/.exec(name) ?? []
  const version = isIP(address)
  const length = Number(bits ?? (version === 4 ? 32 : 128))
  if (version !== 0 && length <= (version === 4 ? 32 : 128)) {
    const network = new BlockList()
    network.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6')
    return isOfPort && family !== 0 && network.check(host, family === 4 ? 'ipv4' : 'ipv6')
  }
  const domain = name.replace(/^\*?\./, '').replace(/\.$/, '')
  // No host name ends in a number, so `10.` and `192.168` would never match.
  if (!/^[a-z0-9_.-]+$/.test(domain) || /(?:^|\.)\d+$/.test(domain)) return null
  return isOfPort && family === 0 && (host === domain || host.endsWith(`.${domain}`))
}

/** A host without the brackets of an IPv6 address. */
export const bareHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

export const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Errors omit the value, because it may contain a password. */
function proxyUrl(name: string, value: string): URL {
  const text = value.includes('://') ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol) && isDecodable(url.username + url.password)) return url
  const kind = /^socks/i.test(text) ? ', but a SOCKS proxy' : ''
  throw new RsmError('usage', `${name} is not an HTTP proxy${kind}`, {
    hint: 'write it as http://HOST:PORT, or name the server in NO_PROXY',
  })
}

/**
 * The proxy variable for the server at `url` (contract §9), unless NO_PROXY matches the server. `warn`
 * receives malformed entries of NO_PROXY.
 */
export function proxySetting(
  url: URL,
  environment: Environment = process.env,
  warn: Warn = () => {},
): readonly [name: string, value: string] | null {
  const proxy = variable(environment, url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY')
  const exempt = variable(environment, 'NO_PROXY')
  if (proxy === null || exempt === null) return proxy
  const entries = exempt[1].split(/[\s,]+/).filter((entry) => entry !== '')
  const named = entries.map((entry) => isNamedBy(entry.toLowerCase(), url))
  if (named.includes(true)) return null
  const malformed = entries.filter((_, index) => named[index] === null)
  if (malformed.length > 0)
    warn(
      `${exempt[0]} has ${malformed.join(', ')}, which matches no server: write a host, .domain, an address, or a network as 10.0.0.0/8`,
    )
  return proxy
}

/** The proxy of `proxySetting`; null means a direct connection. `HOST:PORT` is an HTTP proxy, as in curl. Errors: `usage`. */
export function proxyFor(url: URL, environment?: Environment, warn?: Warn): URL | null {
  const proxy = proxySetting(url, environment, warn)
  return proxy && proxyUrl(...proxy)
}

export function proxyVariables(environment: Environment = process.env): Record<string, string> {
  const named = Object.entries(environment).filter(([name]) => /^(https?|all|no)_proxy$/i.test(name))
  return Object.fromEntries(named.map(([name, value]) => [name, value ?? '']))
}
