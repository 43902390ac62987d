import type { Client } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'
import type { LoginRequest, LoginResult } from '../core/protocol/http/users.ts'
import { ask, isSomeoneThere } from './input/prompt.ts'

/** Whether the server asks for a code of an authenticator app, or for another one. */
const asksForCode = (error: unknown): boolean =>
  error instanceof RsmError &&
  error.code === 'unauthenticated' &&
  error.fields.some(({ field }) => field === 'code')

/** Logs in; asks for a code of the authenticator app where the server does and none was given. */
export async function logIn(client: Client, credentials: LoginRequest): Promise<LoginResult> {
  try {
    return await client.auth.login(credentials)
  } catch (error) {
    if (credentials.code !== undefined || !asksForCode(error)) throw error
    const { message } = error as RsmError
    if (!isSomeoneThere()) throw new RsmError('unauthenticated', message, { hint: 'give it with --code' })
    const code = await ask('Code: ', { instead: 'give it with --code' })
    return client.auth.login({ ...credentials, code: code.trim() })
  }
}
