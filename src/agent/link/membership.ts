import { RsmError } from '../../core/errors.ts'
import type { AgentOptions } from '../agent-options.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ScriptSetting } from '../script/script-setting.ts'
import { unregisteredState, writeState } from '../status/agent-state.ts'
import { readEnrollToken } from './enroll-token.ts'
import { type Identity, newAgentId, type Registration, readIdentity, writeIdentity } from './identity.ts'
import { enrolled, register } from './registration.ts'
import type { ServerApi } from './server-api.ts'
import { type Verify, verifier } from './verify.ts'

interface MembershipOptions {
  /** The agent's data directory. */
  readonly directory: string
  readonly options: AgentOptions
  /** For the first registration, where it has been read already. */
  readonly enrollToken: string | null
  readonly script: ScriptSetting
  readonly api: ServerApi
  /** Of the present link, as its HELLO said it. */
  readonly linkId: () => string
  /** Milliseconds since 1970 by the server's clock. */
  readonly serverNow: () => number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Hears why the server does not register anew an agent that it had registered before. */
  readonly refused: (reason: string) => void
  readonly signal: AbortSignal
}

/** Who this agent is to its server, and whom it takes for its server. */
export interface Membership {
  readonly agentId: string
  /** The present one. */
  readonly registration: Registration
  /** By the key of the present registration. */
  readonly verify: Verify
  /** Rejects with RsmError: `usage` without an enrolment token, `conflict` for another key, the server's refusal. */
  registerAnew(): Promise<Registration>
}

/**
 * Reads who the agent is, and registers it where it never was; settles then. Rejects with RsmError: `conflict` for a data
 * directory of another agent, `unavailable` for a damaged one, and as `registerAnew` does.
 */
export async function openMembership(setting: MembershipOptions): Promise<Membership> {
  const { directory, options, script, api, linkId, serverNow, clock, random, log, refused, signal } = setting
  let given = setting.enrollToken
  const known = await readIdentity(directory)
  if (known && options.agentId !== undefined && options.agentId !== known.agentId)
    throw new RsmError(
      'conflict',
      `${directory} belongs to the agent ${known.agentId}, not ${options.agentId}`,
      {
        hint: 'choose another --data-dir, or leave --agent-id out',
      },
    )
  const agentId = known?.agentId ?? options.agentId ?? newAgentId()
  let identity: Identity = known ?? { agentId, registration: null }
  let registration: Registration
  let verify: Verify
  const trust = ({ serverKey, keyId }: Registration) => {
    verify = verifier({ agentId, serverKey, keyId, allowUnsigned: options.allowUnsigned, linkId, serverNow })
  }
  const registering = unregisteredState({ agentId, options, script, since: clock.now() })
  /** There is no more state than this before the first registration. */
  const waits = (reason: string | null) => {
    if (!identity.registration) writeState(directory, { ...registering, reason }, log)
    else if (reason !== null) refused(reason)
  }
  const nextToken = () => {
    const token = given ?? readEnrollToken(options)
    // At a later try the file may hold another.
    given = null
    return token
  }
  const registerAnew = async () => {
    const { hostname, url } = options
    const { registration: fresh, enrollToken } = await register({
      api,
      url,
      agentId,
      hostname,
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
  registration = known?.registration ?? (await registerAnew())
  return {
    agentId,
    get registration() {
      return registration
    },
    verify: (type, payload) => verify(type, payload),
    registerAnew,
  }
}
