import { createHash } from 'node:crypto'
import type { Client, ConnectConfig } from 'ssh2'
import { printable } from '../../../core/text/printable.ts'
import type { Channel } from '../../../ssh/conversation.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { HostRecord } from '../../storage/records/host.ts'

/** Characters of a library message, which may quote the host. */
const longestMessage = 300
/** Milliseconds between keepalives, and how many may stay unanswered. */
const signEvery = 15_000
const mostMissed = 4

/** Kinds of host keys, by signature algorithm: a host has one key of each kind, and any of them may be pinned. */
const kinds = [
  ['ssh-ed25519'],
  ['ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'],
  ['rsa-sha2-512', 'rsa-sha2-256'],
] as const
type Kind = (typeof kinds)[number]

export interface Connection {
  /** Runs a line in the login shell, without a terminal. Errors: InstallFault, also after `within` milliseconds. */
  run(line: string, within: number): Promise<Channel>
  close(): void
}

/** Judges the host key before anything is sent; resolves to the reason for a refusal, or null. */
type JudgeKey = (key: string) => Promise<string | null>

export interface Access {
  readonly ip: string
  readonly port: number
  readonly username: string
  readonly login: { readonly password: string } | { readonly privateKey: string }
  /** The stored password, for any kind of login: sudo may ask for it. */
  readonly password: string | null
}

interface Attempt {
  readonly access: Access
  readonly judge: JudgeKey
  /** Milliseconds for the login, over all attempts. */
  readonly within: number
  readonly signal: AbortSignal
}

/** Logs in with stored credentials, trying all kinds of host keys until the pinned one fits. Errors: InstallFault. */
export async function connect(one: Attempt): Promise<Connection> {
  const { access, within, signal } = one
  const place = `${access.ip}:${access.port}`
  const late = AbortSignal.timeout(within)
  const ended = AbortSignal.any([signal, late])
  const first = await attempt(one, null, ended)
  let outcome = first
  for (const kind of kinds) {
    if (!('refused' in outcome)) break
    const next = await attempt(one, kind, ended)
    if (!('error' in next && hasNone(next.error))) outcome = next
  }
  if ('refused' in outcome) throw new InstallFault('refused' in first ? first.refused : outcome.refused)
  if ('error' in outcome && late.aborted)
    throw new InstallFault(`login to ${place} timed out after ${within / 1000} s`)
  if ('error' in outcome) throw explained(outcome.error, access)
  const { client } = outcome
  // Ignored, because errors also end its channels.
  client.on('error', () => undefined)
  const close = () => void client.destroy()
  return {
    run: (line, within) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new InstallFault(why))
        const late = () =>
          fail(`${place} accepted the login but started no command within ${within / 1000} s`)
        AbortSignal.timeout(within).addEventListener('abort', late, { once: true })
        client.exec(line, { allowHalfOpen: true }, (error, channel) => {
          if (error) return fail(`the host did not start the command: ${saidIn(error)}`)
          const closed = new Promise<number | null>((end) => {
            // Not 'exit', which may come before this listener is added.
            channel.on('close', (code?: number | null) => end(code ?? null))
          })
          resolve({ stdin: channel, stdout: channel, stderr: channel.stderr, closed, close })
        })
      }),
    close,
  }
}

type Outcome = { client: Client } | { refused: string } | { error: SshError }

async function attempt(one: Attempt, kind: Kind | null, ended: AbortSignal): Promise<Outcome> {
  const { default: ssh2 } = await import('ssh2')
  const { access, judge } = one
  const client = new ssh2.Client()
  let refused: string | null = null
  const outcome = await new Promise<Outcome>((resolve) => {
    const abort = () => resolve({ error: new Error('connection attempt aborted') })
    if (ended.aborted) return abort()
    ended.addEventListener('abort', abort, { once: true })
    client
      .on('ready', () => resolve({ client }))
      .on('error', (error) => resolve(refused === null ? { error } : { refused }))
      .on('close', () => resolve({ error: new Error('the host closed the connection') }))
      .on('keyboard-interactive', (_name, _instructions, _language, prompts, answer) => {
        const isPassword = prompts.length === 1 && prompts[0]?.echo !== true && access.password !== null
        answer(isPassword ? [access.password ?? ''] : [])
      })
    const hostVerifier = (key: Buffer, verify: (isTaken: boolean) => void) => {
      judge(fingerprintOf(key)).then(
        (why) => {
          refused = why
          verify(why === null)
        },
        (error: Error) => {
          resolve({ error })
          verify(false)
        },
      )
    }
    try {
      client.connect({ ...settings(one, kind), hostVerifier })
    } catch (error) {
      // ssh2 parses our private key before it connects.
      resolve({ error: new Error(`the stored key cannot be used: ${(error as Error).message}`) })
    }
  })
  if (!('client' in outcome)) client.destroy()
  return outcome
}

function settings({ access }: Attempt, kind: Kind | null): ConnectConfig {
  const { ip, port, username, login } = access
  const isPassword = 'password' in login
  return {
    host: ip,
    port,
    username,
    ...login,
    // Some hosts accept the same password only this way.
    tryKeyboard: isPassword,
    authHandler: isPassword ? ['password', 'keyboard-interactive'] : ['publickey'],
    // `within` limits all attempts together.
    readyTimeout: 0,
    keepaliveInterval: signEvery,
    keepaliveCountMax: mostMissed,
    ...(kind !== null && { algorithms: { serverHostKey: [...kind] } }),
  }
}

/** Whether ssh2 failed because the host has no key of this kind. */
const hasNone = (error: SshError) =>
  error.level === 'handshake' && /no matching host key/i.test(error.message)

type SshError = Error & { level?: string; code?: string | number }

function explained(error: SshError, { ip, port, username, login }: Access): InstallFault {
  const place = `${ip}:${port}`
  const { level, code } = error
  if (level === 'client-authentication')
    return new InstallFault(
      `${place} rejected the stored ${'password' in login ? 'password' : 'key'} of ${username}`,
    )
  if (code === 'ECONNREFUSED') return new InstallFault(`${place} refuses connections: does sshd run there?`)
  return new InstallFault(`no SSH connection to ${place}: ${saidIn(error)}`)
}

const saidIn = ({ message }: Error) => printable(message).slice(0, longestMessage)

/** Fingerprint in the format of `ssh-keygen -l`. */
const fingerprintOf = (key: Buffer): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace('=', '')}`

/** Decrypted credentials of a host. Errors: InstallFault, naming the missing one and the command that sets it. */
export function accessOf(host: HostRecord, keys: Pick<Keys, 'open'>): Access {
  const { id, hostname, ip, sshPort: port, authType, username } = host
  const missing = (what: string, option: string) =>
    new InstallFault(`${hostname} has no ${what}: rsm hosts edit ${hostname} ${option}`)
  const opened = (field: 'password' | 'privateKey'): string | null => {
    const sealed = host[field]
    if (sealed === null) return null
    try {
      return keys.open(sealed, `hosts/${id}/${field}`)
    } catch {
      throw new InstallFault(
        `the stored ${field} of ${hostname} cannot be decrypted: its sealing key is missing; store it again`,
      )
    }
  }
  if (authType === 'NONE')
    throw missing('SSH credentials', '--ssh-user USER with --private-key FILE or --password-stdin')
  if (username === null) throw missing('SSH user', '--ssh-user USER and its credentials')
  const password = opened('password')
  if (authType === 'PASSWORD') {
    if (password === null) throw missing('SSH password', '--password-stdin')
    return { ip, port, username, login: { password }, password }
  }
  const privateKey = opened('privateKey')
  if (privateKey === null) throw missing('SSH key', '--private-key FILE')
  return { ip, port, username, login: { privateKey }, password }
}

/** Why an agent could not be installed; becomes the error of its host's result. */
export class InstallFault extends Error {
  /** 255 if SSH itself failed, as with `ssh`; else the exit code of the command on the host. */
  readonly exitCode: number

  constructor(message: string, exitCode = 255) {
    super(message)
    this.exitCode = exitCode
  }
}
