import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import type { Connection } from '../../net/connect.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Clock, ServerTime } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ScriptSetting } from '../processes/script-setting.ts'
import { unregisteredState } from '../reports/agent-state.ts'
import type { StatusFile } from '../reports/status-file.ts'
import { type Identity, newAgentId, type Registration, readIdentity, writeIdentity } from './identity.ts'
import { enrolled, readEnrollToken, register } from './registration.ts'
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
