import { createHmac, randomBytes } from 'node:crypto'

/** A secret as long as a SHA-256. */
export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** The headers of Standard Webhooks for a body. `at`: milliseconds since 1970 of this try. */
export function signed(secret: string, id: string, at: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` }
}
