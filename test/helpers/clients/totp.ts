import { codeAt } from '../../../src/server/access/totp.ts'
import type { TestServer } from '../servers/server.ts'

/** The code that an authenticator app shows `ahead` steps of 30 s from now. A code is accepted once, and none before it later. */
export const appShows = (secret: string, ahead = 0): string =>
  codeAt(secret, Math.floor(Date.now() / 30_000) + ahead)

const as = (token: string) => ({ authorization: `Bearer ${token}` })

/** Enables TOTP for the user of this session; returns the secret of the app and the recovery codes. */
export async function enableTotp(
  server: TestServer,
  currentPassword: string,
  token = server.token,
): Promise<{ secret: string; recoveryCodes: string[] }> {
  const made = await server.api('POST', '/api/auth/totp', { currentPassword }, as(token))
  const { secret } = made.body.data
  const body = { code: appShows(secret, -1) }
  const confirmed = await server.api('POST', '/api/auth/totp/confirm', body, as(token))
  if (confirmed.status !== 200) throw new Error(JSON.stringify(confirmed.body))
  return { secret, recoveryCodes: confirmed.body.data.recoveryCodes }
}
