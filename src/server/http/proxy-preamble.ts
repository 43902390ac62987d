import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type Clients, canonicalAddress } from '../access/client-address.ts'
import { answerRaw } from './answers.ts'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const headBytes = 16
/** Limit of addresses and extensions together; HAProxy's own buffer is of this size. */
const longest = 16 * 1024

/** Start of a connection. `address` is null if the proxy connects on its own behalf, e.g. for a health check. */
type Beginning =
  | 'unclear'
  | 'none'
  | 'malformed'
  | { readonly bytes: number; readonly address: string | null }

/** Reads a preamble of the PROXY protocol, version 2 (haproxy.org, proxy-protocol.txt §2.2). */
export function readPreamble(data: Buffer): Beginning {
  const known = data.subarray(0, signature.length)
  if (!known.equals(signature.subarray(0, known.length))) return 'none'
  if (data.length < headBytes) return 'unclear'
  const [command = 0, family = 0] = data.subarray(signature.length)
  const length = data.readUInt16BE(headBytes - 2)
  const isProxy = command === 0x21
  if ((!isProxy && command !== 0x20) || length > longest) return 'malformed'
  const bytes = headBytes + length
  // Source and destination addresses, then two ports. Other families than TCP over IPv4 or IPv6 carry no client
  // address.
  const addressBytes = isProxy ? { 0x11: 4, 0x21: 16 }[family] : undefined
  if (addressBytes !== undefined && length < 2 * addressBytes + 4) return 'malformed'
  if (data.length < bytes) return 'unclear'
  if (addressBytes === undefined) return { bytes, address: null }
  const source = data.subarray(headBytes, headBytes + addressBytes)
  return { bytes, address: canonicalAddress(addressBytes === 4 ? source.join('.') : groups(source)) }
}

const groups = (address: Buffer) => (address.toString('hex').match(/..../g) ?? []).join(':')

/**
 * Strips the preamble from connections of trusted proxies before HTTP or TLS reads them. A preamble of any other peer
 * is answered with 400. Closes connections whose start is still unclear after `patience` milliseconds.
 */
export function takePreambles(server: Server, clients: Clients, patience: number): void {
  const accepting = server.listeners('connection')
  server.removeAllListeners('connection')
  const accept = (socket: Socket) => {
    for (const listener of accepting) Reflect.apply(listener, server, [socket])
  }
  const begun = new WeakSet<Socket>()
  server.on('connection', (socket: Socket) => {
    // A socket appears again after a declined upgrade.
    if (begun.has(socket)) return accept(socket)
    begun.add(socket)
    const late = setTimeout(() => socket.destroy(), patience)
    const broken = () => socket.destroy()
    let data = Buffer.alloc(0)
    const parse = () => {
      const more: Buffer | null = socket.read()
      if (more === null) return
      data = Buffer.concat([data, more])
      const beginning = readPreamble(data)
      if (beginning === 'unclear') return
      clearTimeout(late)
      socket.off('readable', parse).off('end', broken).off('error', broken)
      judge(socket, data, beginning)
    }
    socket.on('readable', parse).on('end', broken).on('error', broken)
    socket.once('close', () => clearTimeout(late))
  })

  function judge(socket: Socket, data: Buffer, beginning: Exclude<Beginning, 'unclear'>): void {
    if (beginning === 'none') socket.unshift(data)
    else if (beginning === 'malformed') return refuse(socket, 'The PROXY preamble is invalid')
    else if (!clients.trusts(socket.remoteAddress))
      return refuse(socket, `${socket.remoteAddress} is not a trusted proxy: its PROXY preamble is refused`)
    else {
      clients.behind(socket, beginning.address ?? socket.remoteAddress ?? '')
      const rest = data.subarray(beginning.bytes)
      if (rest.length > 0) socket.unshift(rest)
    }
    accept(socket)
  }
}

function refuse(socket: Socket, message: string): void {
  socket.on('error', () => undefined)
  answerRaw(socket, 400, message)
  socket.destroySoon()
}
