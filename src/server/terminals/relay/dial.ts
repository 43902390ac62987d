import type { NetConnectOpts } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import { keyPin } from '../../tls/certificate.ts'
import { longestMessage } from './channel.ts'

export const relayPath = '/ws/server'
/** Milliseconds for the connection, its TLS and the answer to the upgrade. */
const dialTime = 5_000

/** How other servers reach one. */
export interface Endpoint {
  readonly url: string
  /** Of the key of its certificate; null: as the authorities of this machine say, or without TLS. */
  readonly pin: string | null
}

/** A WebSocket to another server; `ticket` lets it in. */
export function dial({ url, pin }: Endpoint, ticket: string): WebSocket {
  return new WebSocket(`${url.replace(/^http/, 'ws')}${relayPath}`, {
    headers: { authorization: `Server ${ticket}` },
    perMessageDeflate: false,
    maxPayload: longestMessage,
    handshakeTimeout: dialTime,
    // The type lacks the callback of Node, for connections that take a while.
    ...(pin !== null && {
      createConnection: pinned(pin) as unknown as Required<ClientOptions>['createConnection'],
    }),
  })
}

/** Connects by TLS; nothing is sent before the key of the certificate is known to be the registered one. */
const pinned =
  (pin: string) =>
  (options: NetConnectOpts, connected: (error: Error | null, socket?: TLSSocket) => void): undefined => {
    const socket = connect({ ...options, path: undefined, rejectUnauthorized: false })
    const late = setTimeout(() => socket.destroy(new Error('no TLS in time')), dialTime)
    socket.once('error', connected)
    socket.once('close', () => clearTimeout(late))
    socket.once('secureConnect', () => {
      clearTimeout(late)
      socket.off('error', connected)
      const certificate = socket.getPeerX509Certificate()
      if (certificate !== undefined && keyPin(certificate) === pin) return connected(null, socket)
      socket.destroy()
      connected(new Error('its certificate has another key than it has registered'))
    })
  }
