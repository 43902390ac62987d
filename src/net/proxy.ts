import { RsmError } from '../core/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The variable that is set, lower case first; an empty one is not set, as in curl. */
function variable(environment: Environment, name: string): readonly [name: string, value: string] | null {
  for (const each of [name.toLowerCase(), name]) {
    const value = environment[each]
    if (value) return [each, value]
  }
  return null
}

/** Whether NO_PROXY names a server: `*`, `host` and all below it, `.domain`, `host:port`, an IPv6 address, `[IPv6]:port`. */
function isExempt(url: URL, list: string): boolean {
  const host = bareHost(url).toLowerCase()
  const port = portOf(url)
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === '*') return true
      const parts = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+):(\d+)$/.exec(entry) ?? ['', entry]
      const [, name = '', only] = parts
      const bare = name.replace(/^\*?\./, '')
      if (bare === '' || (only !== undefined && Number(only) !== port)) return false
      return host === bare || host.endsWith(`.${bare}`)
    })
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

/** The value is not shown: it may hold a password. */
function proxyUrl(name: string, value: string): URL {
  const text = value.includes('://') ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol) && isDecodable(url.username + url.password)) return url
  const kind = /^socks/i.test(text) ? ', but a SOCKS proxy' : ''
  throw new RsmError('usage', `${name} names no HTTP proxy${kind}`, {
    hint: 'write it as http://HOST:PORT, or name the server in NO_PROXY',
  })
}

/**
 * The proxy for the server at `url` by HTTPS_PROXY or HTTP_PROXY, whichever fits its scheme, and NO_PROXY (contract §9);
 * null means a direct connection. `HOST:PORT` is an HTTP proxy, as in curl. Errors: `usage`, naming the variable.
 */
export function proxyFor(url: URL, environment: Environment = process.env): URL | null {
  const proxy = variable(environment, url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY')
  const exempt = variable(environment, 'NO_PROXY')
  if (proxy === null || (exempt !== null && isExempt(url, exempt[1]))) return null
  return proxyUrl(...proxy)
}

/** What of an environment says by which proxies servers are reached. */
export function proxyVariables(environment: Environment = process.env): Record<string, string> {
  const named = Object.entries(environment).filter(([name]) => /^(https?|all|no)_proxy$/i.test(name))
  return Object.fromEntries(named.map(([name, value]) => [name, value ?? '']))
}
