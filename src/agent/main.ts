import { RsmError } from '../core/errors.ts'
import { stoppedReason } from '../core/protocol/close-codes.ts'
import { Allowance } from '../core/rates.ts'
import { openDataDirectory } from '../disk/data-directory.ts'
import { openConnection } from '../net/connect.ts'
import type { AgentOptions, RunningAgent } from './agent-options.ts'
import { systemClock } from './clock.ts'
import { revokedDelay } from './link/backoff.ts'
import { converse } from './link/conversation.ts'
import { tokenToEnroll } from './link/membership.ts'
import { type LogLevel, leveled, stderrLog } from './log.ts'
import { enter, openParts, type Parts } from './parts.ts'
import { checkAccounts, warnOfRoot, warnOfUnknown } from './processes/script-setting.ts'
import { sweepTerminals } from './terminals/leftovers.ts'

/** Milliseconds that a drained agent waits for the server's acknowledgements. */
const drainPatience = 10_000
const drainPoll = 20

export type { AgentOptions, RunningAgent } from './agent-options.ts'

/** Registrations of an agent with an invalid token: this many at once, then one in 5 minutes. */
const enrollmentsAtOnce = 3

/**
 * Starts the agent; resolves once it is registered. Rejects with RsmError: `conflict` for a data directory in
 * use, the server's refusal of a registration, `usage` if a required enrollment token is missing.
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  let level = options.logLevel ?? 'INFO'
  const setLevel = (given: LogLevel) => {
    level = options.logLevel ?? given
  }
  const log = leveled(options.log ?? stderrLog, () => level)
  const connection = openConnection({ ...options, warn: (text) => log('WARN', text) })
  // Check before creating the directory, so that a misconfigured agent leaves nothing on its host.
  const accounts = await checkAccounts(options)
  const enrollToken = await tokenToEnroll(options)
  const directory = await openDataDirectory(options.dataDir, { othersMayPass: accounts.hasOthers })
  const opened: (() => unknown)[] = [() => directory.release(), () => connection.agent.destroy()]
  const stopping = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal
  const bootstrap = { options, clock, random, log, connection, accounts, enrollToken, signal, opened }
  try {
    const entered = await enter({ ...bootstrap, dataDir: directory.path })
    warnOfRoot(entered.script, log)
    const { own, sandbox } = entered.script
    const isReached = sandbox.mode === 'strict' || own.uid !== 0
    await warnOfUnknown(options.allowRunAs, log, { dataDir: isReached ? null : directory.path })
    const parts = await openParts(entered)
    const conversation = converse(parts)
    await sweepTerminals(parts.sessions, parts)
    await parts.runner.recover()
    await parts.status.publish()
    startHeartbeat(parts, setLevel)
    return running(parts, async (isDrained) => {
      if (isDrained) await drain(parts)
      stopping.abort()
      await stop(parts)
      conversation.stop()
      for (const close of opened) await close()
    })
  } catch (error) {
    for (const close of opened) await close()
    throw error
  }
}

/** Starts heartbeats and metrics, and handles their answers; `setLevel` applies the configured log level. */
function startHeartbeat(parts: Parts, setLevel: (level: LogLevel) => void): void {
  const { heartbeat, status, outbox, link, options } = parts
  const enrollAgain = registrar(parts)
  heartbeat.start({
    reached(wasAway, pendingTasks) {
      status.answered()
      // Link only after the first answer, because signatures are checked against the server's clock.
      if (!options.onDemand || !outbox.isIdle || pendingTasks > 0) link.open()
      if (wasAway) link.retryNow()
    },
    missed: (reason) => status.unanswered(reason),
    configured(config) {
      setLevel(config.logLevel)
      // A heartbeat counts 0 pending tasks during a store outage; this list is exact (contract §12).
      if (config.pendingTasks.length > 0) link.open()
    },
    revoked: enrollAgain,
  })
}

/** Registers again with the enrollment token when the agent's token is invalid; resolves to false on failure. */
function registrar({ membership, status, options, clock, signal, log }: Parts): () => Promise<boolean> {
  const { agentId } = membership
  // Two agents that replace each other must not do so without a pause.
  const enrolling = new Allowance(enrollmentsAtOnce, revokedDelay)
  return async () => {
    log('ERROR', 'the token of this agent is no longer valid', {
      hint: 'enroll the host again: `rsm hosts join --replace HOST`, or `rsm hosts join` if it was removed, and give the agent the new token',
    })
    if (options.enrollToken === undefined || enrolling.take(agentId, clock.monotonic()) > 0) return false
    try {
      await membership.registerAgain((reason) => {
        if (reason !== null) status.unanswered(reason)
      })
      return true
    } catch (error) {
      if (signal.aborted) return false
      log('ERROR', 'could not register again', { error: String(error) })
      if (error instanceof RsmError) status.unanswered(error.message)
      return false
    }
  }
}

function running(
  { membership, link, terminals }: Parts,
  end: (isDrained: boolean) => Promise<void>,
): RunningAgent {
  let stopped: Promise<void> | undefined
  let settle = () => {}
  const closed = new Promise<void>((resolve) => {
    settle = resolve
  })
  return {
    agentId: membership.agentId,
    get hostId() {
      return membership.registration.hostId
    },
    linked: () => link.isOpen,
    closed,
    stop: () => (stopped ??= end(true).then(settle)),
    async giveWay() {
      if (terminals.size > 0) return false
      await (stopped ??= end(false).then(settle))
      return true
    },
  }
}

/** With --drain, waits for running executions, and a while for the server's acknowledgements. */
async function drain({ options, runner, link, clock, log }: Parts): Promise<void> {
  if (!options.drain) return
  log('INFO', 'draining')
  await runner.drain()
  for (let waited = 0; link.isOpen && !runner.isDrained && waited < drainPatience; waited += drainPoll)
    await new Promise<void>((resolve) => clock.after(drainPoll, resolve))
}

/**
 * Shutdown order: no new work first; then sessions end and report that; then nothing is sent. The caller
 * closes the files last, so that another agent can use them.
 */
async function stop({ heartbeat, terminals, link, outbox, runner }: Parts): Promise<void> {
  heartbeat.stop()
  await terminals.stop()
  await link.close(stoppedReason)
  outbox.end()
  await runner.stop()
}
