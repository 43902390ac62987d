import type { Endpoint } from '../../net/connect.ts'
import { bareHost, portOf, proxyFor } from '../../net/proxy.ts'

/** How long the server may take to show its certificate. */
const patience = 5_000

/**
 * When the server's certificate ends, milliseconds since 1970; null without TLS, through a proxy, or where it does not
 * show one in time. It is looked at only, so that it need not be trusted: nothing is sent.
 */
export async function certificateEnds({ url }: Pick<Endpoint, 'url'>): Promise<number | null> {
  const base = new URL(url)
  if (base.protocol !== 'https:' || proxyFor(base) !== null) return null
  const tls = process.getBuiltinModule('node:tls')
  const host = bareHost(base)
  const servername = process.getBuiltinModule('node:net').isIP(host) === 0 ? host : ''
  return new Promise((resolve) => {
    const socket = tls.connect({
      host,
      port: portOf(base),
      servername,
      rejectUnauthorized: false,
    })
    const settle = (ends: number) => {
      socket.destroy()
      resolve(Number.isNaN(ends) ? null : ends)
    }
    socket.setTimeout(patience, () => settle(Number.NaN))
    socket.once('error', () => settle(Number.NaN))
    socket.once('secureConnect', () => settle(Date.parse(socket.getPeerCertificate().valid_to)))
  })
}
