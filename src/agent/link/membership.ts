import { createHash, randomBytes } from 'node:crypto'
import { linkAdvice } from '../../core/checks/link-trouble.ts'
import { mendable, RsmError } from '../../core/errors.ts'
import { pause } from '../../net/backoff.ts'
import type { Connection } from '../../net/connect.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Clock, ServerTime } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ScriptSetting } from '../processes/script-setting.ts'
import { unregisteredState } from '../reports/agent-state.ts'
import { hostFacts } from '../reports/facts.ts'
import type { StatusFile } from '../reports/status-file.ts'
import { agentBackoff } from './backoff.ts'
import { type Identity, newAgentId, type Registration, readIdentity, writeIdentity } from './identity.ts'
import { type ServerApi, serverApi } from './server-api.ts'
import { type Verify, verifier } from './verify.ts'

interface MembershipOptions {
  readonly directory: string
  readonly options: AgentOptions
  /** Token of the first registration, if already read. */
  readonly enrollToken: string | null
  readonly script: ScriptSetting
  readonly connection: Connection
  readonly serverTime: ServerTime
  readonly status: StatusFile
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly signal: AbortSignal
}

/** This agent's registration at its server, and its trust in that server. */
export interface Membership {
  readonly agentId: string
  readonly registration: Registration
  /** Calls the server with the current token. */
  readonly api: ServerApi
  /** Verifies with the key of the current registration, for the current link. */
  readonly verify: Verify
  /** Creates the id of a new link for HELLO: messages signed for another link are refused from then on. */
  newLink(): string
  /**
   * Calls `waits` with the reason for each delay. Rejects with RsmError: `usage` without an enrollment token,
   * `conflict` if the server has another key, or the server's refusal.
   */
  registerAgain(waits: (reason: string | null) => void): Promise<Registration>
}

/**
 * Reads the identity, and registers the agent if it is new; resolves once registered. Rejects with RsmError:
 * `conflict` for a data directory of another agent, `unavailable` for a damaged one, and like
 * `registerAgain`.
 */
export async function openMembership(setting: MembershipOptions): Promise<Membership> {
  const { directory, options, script, serverTime, status, clock, random, log, signal } = setting
  let given = setting.enrollToken
  const known = await readIdentity(directory)
  if (known && options.agentId !== undefined && options.agentId !== known.agentId)
    throw new RsmError(
      'conflict',
      `${directory} belongs to the agent ${known.agentId}, not ${options.agentId}`,
      {
        hint: 'choose another --data-dir, or omit --agent-id',
      },
    )
  const agentId = known?.agentId ?? options.agentId ?? newAgentId()
  let identity: Identity = known ?? { agentId, registration: null }
  let registration: Registration
  let verify: Verify
  let linkId = ''
  const api = serverApi(setting.connection, () => registration.token, serverTime)
  const trust = ({ serverKey, keyId }: Registration) => {
    verify = verifier({
      agentId,
      serverKey,
      keyId,
      allowUnsigned: options.allowUnsigned,
      linkId: () => linkId,
      serverNow: () => serverTime.now(),
    })
  }
  const since = clock.now()
  /** The only state before the first registration. */
  const reportWaiting = (reason: string | null) =>
    void status.publish(() => unregisteredState({ agentId, options, script, since, reason }))
  const nextToken = () => {
    const token = given ?? readEnrollToken(options)
    // On a retry, the file may hold another token.
    given = null
    return token
  }
  const registerAgain = async (waits: (reason: string | null) => void) => {
    const { hostname, diskSize, url } = options
    const { registration: fresh, enrollToken } = await register({
      api,
      url,
      agentId,
      hostname,
      diskSize,
      enrollToken: nextToken,
      clock,
      random,
      log,
      waits,
      signal,
    })
    identity = enrolled(identity, fresh, enrollToken)
    registration = fresh
    trust(registration)
    await writeIdentity(directory, identity)
    log('INFO', 'registered', { agentId, hostId: registration.hostId })
    return registration
  }
  if (!known) await writeIdentity(directory, identity)
  if (known?.registration) trust(known.registration)
  registration = known?.registration ?? (await registerAgain(reportWaiting))
  return {
    agentId,
    get registration() {
      return registration
    },
    api,
    verify: (type, payload) => verify(type, payload),
    newLink: () => {
      linkId = randomBytes(12).toString('base64url')
      return linkId
    },
    registerAgain,
  }
}

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
async function register(
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
function enrolled(previous: Identity, registration: Registration, enrollToken: string): Identity {
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
function readEnrollToken({ enrollToken }: TokenOptions): string {
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
