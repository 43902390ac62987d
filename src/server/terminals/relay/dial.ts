import type { NetConnectOpts } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import { keyPin } from '../../tls/certificate.ts'
import { longestMessage } from './channel.ts'

export const relayPath = '/ws/server'
/** Milliseconds for connection, TLS and the upgrade response. */
const dialTime = 5_000

/** Address of a server for other servers. */
export interface Endpoint {
  readonly url: string
  /** Pin of its certificate's key; null to trust this machine's CAs, or without TLS. */
  readonly pin: string | null
}

/** Opens a WebSocket to another server; `ticket` authenticates it. */
export function dial({ url, pin }: Endpoint, ticket: string): WebSocket {
  return new WebSocket(`${url.replace(/^http/, 'ws')}${relayPath}`, {
    headers: { authorization: `Server ${ticket}` },
    perMessageDeflate: false,
    maxPayload: longestMessage,
    handshakeTimeout: dialTime,
    // The type lacks Node's asynchronous callback.
    ...(pin !== null && {
      createConnection: pinned(pin) as unknown as Required<ClientOptions>['createConnection'],
    }),
  })
}

/** Connects by TLS; sends nothing before the certificate's key is verified against the pin. */
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
      connected(new Error('the key of its certificate is not the registered one'))
    })
  }
