import { createHash } from 'node:crypto'
import { linkAdvice } from '../../core/checks/link-trouble.ts'
import { mendable, RsmError } from '../../core/errors.ts'
import { pause } from '../../net/backoff.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { hostFacts } from '../reports/facts.ts'
import { agentBackoff } from './backoff.ts'
import { type Identity, type Registration, readIdentity } from './identity.ts'
import type { ServerApi } from './server-api.ts'

interface RegisterOptions {
  readonly api: ServerApi
  readonly url: string
  readonly agentId: string
  readonly hostname: string | undefined
  readonly diskSize: (() => Promise<number>) | undefined
  /** Called for each attempt, because the token file may have changed. */
  readonly enrollToken: () => string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Called with the reason for each delay. */
  readonly waits: (reason: string | null) => void
  readonly signal: AbortSignal
}

/**
 * Registers, however long the server is unavailable. After a lost reply it asks again: the server repeats its
 * reply until the token is used (contract §3). Rejects if the server refuses.
 */
export async function register(
  options: RegisterOptions,
): Promise<{ registration: Registration; enrollToken: string }> {
  const backoff = agentBackoff(options.random)
  options.waits(null)
  const body = await hostFacts(options.agentId, options.hostname, options.diskSize)
  for (;;) {
    try {
      const enrollToken = options.enrollToken()
      const given = await options.api.register(body, enrollToken)
      const { hostId, token, heartbeatInterval, metricsInterval, serverKey, keyId } = given
      const registration = { hostId, token, heartbeatInterval, metricsInterval, serverKey, keyId }
      return { registration, enrollToken }
    } catch (error) {
      if (!(error instanceof RsmError)) throw error
      // The server asks a removed host to wait for a newer token (contract §3).
      if (!mendable(error) && error.retryAfter === undefined) throw explained(error)
      const delay = backoff.next(error.retryAfter)
      options.waits(error.message)
      const hint =
        error.code === 'unreachable'
          ? { hint: linkAdvice(error.message, options.url).replaceAll('HOST', 'this host') }
          : {}
      options.log('WARN', 'not registered yet', { error: error.message, ...hint, retryInMs: delay })
      await pause(delay, options.signal, (ms, run) => options.clock.after(ms, run))
      if (options.signal.aborted)
        throw new RsmError('interrupted', 'the agent was stopped before it was registered')
    }
  }
}

/** Adds a hint to a permanent refusal, because about a token the server says only that it is refused. */
function explained(error: RsmError): RsmError {
  if (error.code !== 'unauthenticated' && error.code !== 'forbidden') return error
  const hint =
    'start the agent with a new enrollment token: rsm hosts join, or rsm hosts join --replace HOST if the host was registered before'
  return new RsmError(error.code, `the server refused to register this host: ${error.message}`, {
    ...(error.message.includes('rsm hosts join') ? {} : { hint }),
    cause: error,
  })
}

/**
 * The identity with a new registration. An enrollment token used before cannot bring another key: otherwise
 * an attacker on the server's address could answer 401, have the agent register again, and sign orders for it
 * (S05). Errors: `conflict`, and the identity stays as it was.
 */
export function enrolled(previous: Identity, registration: Registration, enrollToken: string): Identity {
  const enrolledWith = createHash('sha256').update(enrollToken).digest('hex')
  const known = previous.registration
  if (
    known &&
    known.serverKey !== registration.serverKey &&
    (previous.enrolledWith ?? enrolledWith) === enrolledWith
  )
    throw new RsmError('conflict', 'the server has another key than it had with the same enrollment token', {
      hint: 'if the server was really replaced, create a new token: `rsm hosts join --replace HOST`',
    })
  return { agentId: previous.agentId, registration, enrolledWith }
}

type TokenOptions = Pick<AgentOptions, 'dataDir' | 'enrollToken'>

/**
 * The enrollment token, read from its file if it has one. @throws RsmError `usage` if it is missing, or
 * invalid in a header.
 */
export function readEnrollToken({ enrollToken }: TokenOptions): string {
  if (enrollToken === undefined)
    throw new RsmError('usage', 'this host is not registered, and there is no enrollment token', {
      hint: 'make one with `rsm hosts join`, and pass it as --enroll-token',
    })
  const token = typeof enrollToken === 'function' ? enrollToken() : enrollToken
  if (/^[!-~]+$/.test(token)) return token
  const fault = token === '' ? 'is empty' : 'contains a space, a line break or a non-ASCII character'
  throw new RsmError('usage', `the enrollment token ${fault}`, {
    hint: 'a token is one word, as `rsm hosts join` prints it',
  })
}

/** Token of an unregistered host; null if registered, or if that is unknown until the directory is locked. */
export async function tokenToEnroll(options: TokenOptions): Promise<string | null> {
  const known = await readIdentity(options.dataDir).catch(() => undefined)
  return known === undefined || known?.registration ? null : readEnrollToken(options)
}
