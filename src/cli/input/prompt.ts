import { openSync, statSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { LoginRequest, LoginResult, PasswordChange } from '../../core/protocol/http/users.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { readSecretFile } from './named-path.ts'
import { stdinReader } from './stdin.ts'

const longestAnswer = 4096
const hiddenPassword = { hidden: true, instead: 'use --password-stdin' } as const

/** Minimum passphrase length, because nothing throttles guesses at the keys in a backup. */
const shortestPassphrase = 12

/**
 * Whether a person can be prompted: stdin or stderr is a terminal, even if the other is redirected (`exec --all - < script`).
 * False in CI, where a job may have an unattended terminal.
 */
export function isSomeoneThere(): boolean {
  return (process.stdin.isTTY || process.stderr.isTTY) && (process.env['CI'] ?? '') === ''
}

/**
 * Prompts on the terminal. `hidden` disables echo; `instead` is the hint if there is no terminal. Errors: `interrupted` after
 * Ctrl-C or an aborted `signal`, `usage` without a terminal.
 */
export async function ask(
  question: string,
  options: { hidden?: boolean; instead: string; signal?: AbortSignal },
): Promise<string> {
  const { input, fd } = openTerminal(question, options.instead)
  const hidden = options.hidden === true
  let answer = ''
  // Raw mode only for secrets, because the terminal's own line editing is better. Set before the question, so that a fast
  // answer is not echoed.
  if (hidden) input.setRawMode(true)
  writeSync(fd, sanitizeLine(question))
  const interrupted = () => new RsmError('interrupted', 'interrupted')
  const over = new AbortController()
  try {
    return await new Promise<string>((resolve, reject) => {
      const once = { once: true, signal: over.signal }
      options.signal?.addEventListener('abort', () => reject(interrupted()), once)
      input.on('error', reject)
      input.on('end', () => reject(interrupted()))
      input.on('data', (bytes: Buffer) => {
        for (const key of bytes.toString('utf8')) {
          if (key === '\r' || key === '\n') return resolve(answer)
          if (key === '\u0003') return reject(interrupted())
          if (key === '\u0004' && answer === '') return reject(interrupted())
          if (key === '\u0015') answer = ''
          else if (key === '\u007f' || key === '\b') answer = answer.slice(0, -1)
          else if (answer.length < longestAnswer) answer += key
        }
      })
    })
  } finally {
    over.abort()
    if (hidden) {
      input.setRawMode(false)
      writeSync(fd, '\n')
    }
    input.destroy()
  }
}

/** Answers come from the terminal, never from stdin (contract §9). */
function openTerminal(question: string, instead: string): { input: ReadStream; fd: number } {
  try {
    const fd = openSync('/dev/tty', 'r+')
    return { input: new ReadStream(fd), fd }
  } catch {
    throw new RsmError('usage', `no terminal to ask "${question.trim().replace(/:$/, '')}"`, {
      hint: instead,
    })
  }
}

/** Anything but yes means no. */
export async function confirm(question: string, instead: string): Promise<boolean> {
  const answer = await ask(`${question} [y/N] `, { instead })
  return /^y(es)?$/i.test(answer.trim())
}

/** Asks before a removal; without a terminal, `--yes` is required (contract §9). */
export async function confirmRemoval(what: string, yes: boolean): Promise<void> {
  if (yes) return
  if (!(await confirm(`Remove ${what}?`, 'use --yes')))
    throw new RsmError('interrupted', 'nothing was removed')
}

/** Asks before replacing an existing file, unless `yes`. Errors: `usage` if not a regular file, `interrupted` for a no. */
export async function mayReplace(file: string, yes: boolean): Promise<void> {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  // Replacing a device such as /dev/null would break the machine.
  if (!found.isFile())
    throw new RsmError('usage', `${file} is ${found.isDirectory() ? 'a directory' : 'not a regular file'}`, {
      hint: 'name a file to write, or - for stdout',
    })
  if (!yes && !(await confirm(`Replace ${file}?`, `${file} already exists: use --yes to replace it`)))
    throw new RsmError('interrupted', `${file} was not replaced`)
}

/** Reads a password from stdin or a hidden prompt; never an argument, because every user can read those. */
export async function readPassword(fromStdin: boolean, question: string): Promise<string> {
  if (!fromStdin) return ask(question, hiddenPassword)
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
  const again = await ask('Repeat the new password: ', hiddenPassword)
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
