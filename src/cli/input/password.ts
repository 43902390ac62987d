import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { LoginRequest, LoginResult, PasswordChange } from '../../core/protocol/http/users.ts'
import { readSecretFile } from './named-path.ts'
import { ask, isSomeoneThere } from './prompt.ts'
import { stdinReader } from './stdin.ts'

const instead = 'use --password-stdin'

/** Minimum passphrase length, because nothing throttles guesses at the keys in a backup. */
const shortestPassphrase = 12

/** Reads a password from stdin or a hidden prompt; never an argument, because every user can read those. */
export async function readPassword(fromStdin: boolean, question: string): Promise<string> {
  if (!fromStdin) return ask(question, { hidden: true, instead })
  const password = (await stdinReader()('the password')).replace(/\r?\n$/, '')
  if (password === '') throw new RsmError('usage', 'no password on stdin')
  return password
}

/** Reads the current and a new password from two lines of stdin, or from hidden prompts. */
export async function readChangedPassword(fromStdin: boolean): Promise<PasswordChange> {
  if (!fromStdin) {
    const currentPassword = await readPassword(false, 'Current password: ')
    return { currentPassword, newPassword: await readNewPassword(false) }
  }
  const lines = (await readPassword(true, '')).split(/\r?\n/)
  const [currentPassword = '', newPassword = ''] = lines
  if (lines.length === 2 && currentPassword !== '' && newPassword !== '')
    return { currentPassword, newPassword }
  throw new RsmError('usage', 'stdin must have two lines: the current password and the new one')
}

export async function readNewPassword(fromStdin: boolean): Promise<string> {
  const password = await readPassword(fromStdin, 'New password: ')
  if (fromStdin) {
    if (!/[\r\n]/.test(password)) return password
    throw new RsmError('usage', 'stdin has more than one line; a password is a single line')
  }
  const again = await ask('Repeat the new password: ', { hidden: true, instead })
  if (again !== password) throw new RsmError('usage', 'the passwords do not match')
  return password
}

/** Reads a new passphrase from the file of an option. Errors: `usage`, also if it is too short. */
export function readNewPassphrase(path: string, option: string): string {
  const passphrase = readSecretFile(path, option)
  if (passphrase.length >= shortestPassphrase) return passphrase
  throw new RsmError(
    'usage',
    `the passphrase in ${path} (${option}) has fewer than ${shortestPassphrase} characters`,
    {
      hint: 'to make a strong one: openssl rand -base64 24',
    },
  )
}

/** Logs in; prompts for a code of the authenticator app if the server requires one and none was given. */
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

/** Whether the server requires a code of an authenticator app. */
const asksForCode = (error: unknown): boolean =>
  error instanceof RsmError &&
  error.code === 'unauthenticated' &&
  error.fields.some(({ field }) => field === 'code')
