import type { Agent } from 'node:https'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { RsmError } from '../../core/errors.ts'

type Connected = (error: Error | null, socket?: Socket) => void

/** A SHA-256 fingerprint as plain hex: colons, case and a leading `sha256:` do not matter. */
export function plainFingerprint(text: string): string {
  const hex = text
    .replace(/^sha-?256:/i, '')
    .replaceAll(':', '')
    .toLowerCase()
  if (/^[0-9a-f]{64}$/.test(hex)) return hex
  throw new RsmError('usage', `not a SHA-256 fingerprint: ${text}`, {
    hint: 'openssl x509 -in CERTIFICATE -noout -fingerprint -sha256',
  })
}

/**
 * Makes an agent trust the one certificate with this fingerprint, whoever signed it. Nothing is written to a socket before
 * the certificate was looked at: the token must not reach a stranger.
 */
export function pin(agent: Agent, fingerprint: string): void {
  const wanted = plainFingerprint(fingerprint)
  const tls = process.getBuiltinModule('node:tls')
  const createConnection = (options: ConnectionOptions, connected: Connected): undefined => {
    const socket = tls.connect({ ...options, rejectUnauthorized: false })
    const failed = (error: Error) => connected(error)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      socket.off('error', failed)
      const shown = plainFingerprint(socket.getPeerCertificate().fingerprint256)
      if (shown === wanted) {
        connected(null, socket)
        return
      }
      socket.destroy()
      const mismatch = new Error(`its certificate is ${shown}, not the pinned ${wanted}`)
      connected(Object.assign(mismatch, { code: 'RSM_PIN_MISMATCH' }))
    })
  }
  Object.assign(agent, { createConnection })
}
