import type { Endpoint } from './send.ts'

/** How long the server may take to show its certificate. */
const patience = 5_000

/**
 * When the server's certificate ends, milliseconds since 1970; null without TLS, through a proxy, or where it does not
 * show one in time. It is looked at only, so that it need not be trusted: nothing is sent.
 */
export async function certificateEnds({ url }: Pick<Endpoint, 'url'>): Promise<number | null> {
  const base = new URL(url)
  const { proxyFor } = await import('./proxy.ts')
  if (base.protocol !== 'https:' || proxyFor(base, process.env) !== undefined) return null
  const tls = process.getBuiltinModule('node:tls')
  const host = base.hostname.replace(/^\[|\]$/g, '')
  const servername = /^[\d.]+$|:/.test(host) ? '' : host
  return new Promise((resolve) => {
    const socket = tls.connect({
      host,
      port: Number(base.port) || 443,
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
