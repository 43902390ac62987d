import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6, type Socket, SocketAddress } from 'node:net'
import { RsmError } from '../../core/errors.ts'

/** Finds the client behind trusted proxies; ignores forwarding headers of any other peer. */
export interface Clients {
  readonly hasProxies: boolean
  trusts(peer: string | undefined): boolean
  /** Records the client's address from the PROXY preamble of a connection. */
  behind(socket: Socket, address: string): void
  /** The client's own address; the TCP peer's if no trusted proxy sends a valid one. */
  addressOf(request: IncomingMessage): string
  /** Scheme the client used to reach a trusted proxy, as the proxy reports it; else null. */
  schemeOf(request: IncomingMessage): 'http' | 'https' | null
  /** @throws RsmError `invalid` for a malformed header of a trusted proxy. */
  check(request: IncomingMessage): void
}

/** Errors: `usage` for a malformed network. */
export function createClients(networks: readonly string[]): Clients {
  const list = listOf(networks)
  const hasProxies = networks.length > 0
  /** Clients from PROXY preambles, by connection: TLS wraps the socket that had the preamble in another one. */
  const noted = new Map<string, { readonly address: string }>()
  const connection = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
    `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
  const trusts = (peer = '') => hasProxies && list.check(peer, isIP(peer) === 6 ? 'ipv6' : 'ipv4')

  /** Address in a trusted proxy's header; null: no header; undefined: malformed. */
  function forwarded({ headers, socket }: IncomingMessage): string | null | undefined {
    const header = headers['x-forwarded-for']
    if (header === undefined || !trusts(socket.remoteAddress)) return null
    let address: string | null = null
    // Each proxy appends its peer, so entries left of the first untrusted address may be forged.
    for (const entry of String(header).split(',').reverse()) {
      address = canonicalAddress(entry.trim())
      if (address === null) return undefined
      if (!trusts(address)) break
    }
    return address
  }

  function scheme({ headers, socket }: IncomingMessage): 'http' | 'https' | null | undefined {
    const header = headers['x-forwarded-proto']
    if (header === undefined || !trusts(socket.remoteAddress)) return null
    const word = String(header).split(',').at(-1)?.trim().toLowerCase()
    // Traefik sends `ws` and `wss` for WebSockets.
    if (word === 'https' || word === 'wss') return 'https'
    return word === 'http' || word === 'ws' ? 'http' : undefined
  }

  const ofPreamble = ({ socket }: IncomingMessage) =>
    noted.size > 0 ? noted.get(connection(socket))?.address : undefined

  return {
    hasProxies,
    trusts,
    behind(socket, address) {
      const key = connection(socket)
      const note = { address }
      noted.set(key, note)
      socket.once('close', () => {
        if (noted.get(key) === note) noted.delete(key)
      })
    },
    addressOf(request) {
      if (!hasProxies) return request.socket.remoteAddress ?? ''
      return ofPreamble(request) ?? forwarded(request) ?? request.socket.remoteAddress ?? ''
    },
    schemeOf: (request) => scheme(request) ?? null,
    check(request) {
      if (!hasProxies) return
      if (scheme(request) === undefined) throw unreadable('X-Forwarded-Proto')
      if (ofPreamble(request) === undefined && forwarded(request) === undefined)
        throw unreadable('X-Forwarded-For')
    },
  }
}

/** @throws RsmError `usage` for anything but an address or a network. */
function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(network.trim()) ?? []
    const version = isIP(address)
    const maxBits = version === 4 ? 32 : 128
    if (version === 0 || Number(bits ?? maxBits) > maxBits)
      throw new RsmError('usage', `--trusted-proxy takes an address or a network, not ${network}`, {
        hint: 'as 10.0.0.5, 10.0.0.0/24 or 2001:db8::/64',
      })
    list.addSubnet(address, Number(bits ?? maxBits), version === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

/** Address with the port that some proxies append. */
const withPort = /^(?:\[(?<six>[^\]]+)\]|(?<four>[\d.]+))(?::\d{1,5})?$/

/** Normalizes an address and unwraps IPv4-mapped IPv6; null if it is invalid. */
export function canonicalAddress(text: string): string | null {
  const { six, four } = withPort.exec(text)?.groups ?? {}
  const address = six ?? four ?? text
  const version = address.includes('%') ? 0 : isIP(address)
  if (version === 0) return null
  const { address: usual } = new SocketAddress({ address, family: version === 4 ? 'ipv4' : 'ipv6' })
  return usual.replace(/^::ffff:(?=\d+\.)/, '')
}

const unreadable = (header: string) => new RsmError('invalid', `The proxy sent an invalid ${header} header`)

const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Groups clients for counting failures by IPv4 address or IPv6 /64, because a client with one address of a /64 has all.
 * Returns any other text unchanged.
 */
export function sourceOf(address: string): string {
  const v4 = mappedIpv4.exec(address)?.[1]
  if (v4 !== undefined) return v4
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const first = groups(head)
  // A trailing dotted decimal stands for two groups.
  const last = groups(tail ?? '').flatMap((group) => (group.includes('.') ? [group, ''] : [group]))
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  const all = [...first, ...Array.from({ length: zeros }, () => '0'), ...last]
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
