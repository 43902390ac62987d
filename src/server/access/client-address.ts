import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6, type Socket, SocketAddress } from 'node:net'
import { RsmError } from '../../core/errors.ts'

/** Finds the client behind trusted proxies. Forwarding headers of any other peer are ignored. */
export interface Clients {
  /** Whether any proxy is trusted. */
  readonly hasProxies: boolean
  /** Whether this TCP peer is a trusted proxy. */
  trusts(peer: string | undefined): boolean
  /** Notes the client of a connection, as its PROXY preamble says. */
  behind(socket: Socket, address: string): void
  /** The client's own address; that of the TCP peer where a trusted proxy says nothing that is well-formed. */
  addressOf(request: IncomingMessage): string
  /** By what the client came to a trusted proxy, as that one says; else null. */
  schemeOf(request: IncomingMessage): 'http' | 'https' | null
  /** @throws RsmError `invalid` for a header of a trusted proxy that cannot be read. */
  check(request: IncomingMessage): void
}

/** Errors: `usage`, see `listOf`. */
export function createClients(networks: readonly string[]): Clients {
  const list = listOf(networks)
  const hasProxies = networks.length > 0
  /** Clients as PROXY preambles say, by connection: TLS has a socket of its own over the one that had the preamble. */
  const noted = new Map<string, { readonly address: string }>()
  const connection = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
    `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
  const trusts = (peer = '') => hasProxies && list.check(peer, isIP(peer) === 6 ? 'ipv6' : 'ipv4')

  /** What a trusted proxy's header says; null: nothing; undefined: nothing that can be read. */
  function forwarded({ headers, socket }: IncomingMessage): string | null | undefined {
    const header = headers['x-forwarded-for']
    if (header === undefined || !trusts(socket.remoteAddress)) return null
    let address: string | null = null
    // Each proxy appends whom it was asked by: what stands left of the first stranger is that stranger's word.
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
    // Traefik says of WebSockets `ws` and `wss`.
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

/** @throws RsmError `usage` for what is neither an address nor a network. */
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

/** An address with the port that some proxies add. */
const withPort = /^(?:\[(?<six>[^\]]+)\]|(?<four>[\d.]+))(?::\d{1,5})?$/

/** An address in its usual spelling, without the IPv6 form of an IPv4 address; null for an invalid one. */
export function canonicalAddress(text: string): string | null {
  const { six, four } = withPort.exec(text)?.groups ?? {}
  const address = six ?? four ?? text
  const version = address.includes('%') ? 0 : isIP(address)
  if (version === 0) return null
  const { address: usual } = new SocketAddress({ address, family: version === 4 ? 'ipv4' : 'ipv6' })
  return usual.replace(/^::ffff:(?=\d+\.)/, '')
}

const unreadable = (header: string) =>
  new RsmError('invalid', `The proxy sent a ${header} that cannot be read`)

const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/**
 * Groups clients for counting refusals and wrong passwords: by IPv4 address, and by /64 of an IPv6 address, because a client with
 * one address of such a network has all of them. Any other text is returned unchanged.
 */
export function sourceOf(address: string): string {
  const v4 = mappedIpv4.exec(address)?.[1]
  if (v4 !== undefined) return v4
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const first = groups(head)
  // Dotted decimals at the end stand for two groups.
  const last = groups(tail ?? '').flatMap((group) => (group.includes('.') ? [group, ''] : [group]))
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  const all = [...first, ...Array.from({ length: zeros }, () => '0'), ...last]
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
