import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Allowance } from '../core/allowance.ts'
import { RsmError } from '../core/errors.ts'
import { stoppedReason } from '../core/protocol/close-codes.ts'
import { openDataDirectory } from '../disk/data-directory.ts'
import { openConnection } from '../net/connect.ts'
import type { AgentOptions, RunningAgent } from './agent-options.ts'
import { ServerTime, systemClock } from './clock.ts'
import { Journal } from './executions/journal.ts'
import { Runner } from './executions/runner.ts'
import { revokedDelay } from './link/backoff.ts'
import { Distrust } from './link/distrust.ts'
import { tokenToEnrol } from './link/enroll-token.ts'
import { inbox } from './link/inbox.ts'
import { Link } from './link/link.ts'
import { openMembership } from './link/membership.ts'
import { serverApi } from './link/server-api.ts'
import { Uplink } from './link/uplink.ts'
import { leveled, stderrLog } from './log.ts'
import { thisMachine } from './processes/machine.ts'
import { agentVersion } from './reports/facts.ts'
import { meter } from './reports/metrics.ts'
import { MetricsBuffer } from './reports/metrics-buffer.ts'
import { Pulse } from './reports/pulse.ts'
import {
  capabilities,
  checkAccounts,
  checkBounds,
  checkSandbox,
  warnOfRoot,
  warnOfUnknown,
} from './script/script-setting.ts'
import { removeState } from './status/agent-state.ts'
import { StatusFile } from './status/status-file.ts'
import { lackOfTerminal } from './terminals/available.ts'
import { sweepSessions } from './terminals/leftovers.ts'
import { Terminals } from './terminals/terminals.ts'
import { Trouble } from './trouble.ts'

/** How long the server may take to answer HELLO before unanswered tasks are offered to it anyway, milliseconds. */
const helloPatience = 10_000

/** How long a drained agent stays for the server's acknowledgements, milliseconds. */
const drainPatience = 10_000
const drainLook = 20

/** Registrations of an agent whose token is void: so many at once, and then one in 5 minutes. */
const enrolmentsAtOnce = 3

export type { AgentOptions, RunningAgent } from './agent-options.ts'

/**
 * Starts the agent; settles once it is registered, at once where it was before. Rejects with RsmError: `conflict` for a
 * data directory in use, the server's refusal of a registration, `usage` without an enrolment token where one is needed.
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  let level = options.logLevel ?? 'INFO'
  const log = leveled(options.log ?? stderrLog, () => level)
  const connection = openConnection(options)
  // Before there is a directory: an agent that can't be as it was told to leaves nothing on its host.
  const accounts = await checkAccounts(options)
  const enrollToken = await tokenToEnrol(options)
  const directory = await openDataDirectory(options.dataDir)
  const opened: (() => unknown)[] = [() => directory.release(), () => connection.agent.destroy()]
  try {
    return await run()
  } catch (error) {
    for (const close of opened) await close()
    throw error
  }

  async function run(): Promise<RunningAgent> {
    opened.unshift(() => removeState(directory.path))
    // First of all: a host that can't run scripts as it was told to has nothing to register for.
    const script = await checkSandbox(options, accounts, directory.path)
    const stopping = new AbortController()
    const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal
    const serverTime = new ServerTime(clock)
    const instanceId = randomBytes(12).toString('base64url')
    let linkId = ''
    const distrust = new Distrust(clock, log)
    const api = serverApi(connection, () => membership.registration.token, serverTime)
    const membership = await openMembership({
      directory: directory.path,
      options,
      enrollToken,
      script,
      api,
      linkId: () => linkId,
      serverNow: () => serverTime.now(),
      clock,
      random,
      log,
      refused: (reason) => status.unheard(reason),
      signal,
    })
    const { agentId } = membership
    warnOfRoot(script, log)
    await warnOfUnknown(options.allowRunAs, log)

    const journal = new Journal(join(directory.path, 'journal'), () => clock.monotonic())
    opened.unshift(() => journal.close())
    const mark = () => journal.markFrom(membership.registration.keyId)
    const bounds = checkBounds(journal.storeId, script.sandbox.mode, options.limits)
    const spool = join(directory.path, 'executions')
    mkdirSync(spool, { recursive: true, mode: 0o700 })
    const common = {
      journal,
      clock,
      machine: options.machine ?? thisMachine,
      ...bounds,
      own: script.own,
      runAs: script.account.name,
      allowRunAs: options.allowRunAs,
      sandbox: script.sandbox,
      log,
      verify: distrust.watching(membership.verify),
      distrusted: (what: string, reason: string) => distrust.note(what, reason),
      hearServerTime: () => pulse.hearServerTime(),
    }
    const runner = new Runner({ ...common, directory: spool, maxExecutions: options.maxExecutions })
    const lack = options.noTerminal ? 'it was started with --no-terminal' : lackOfTerminal()
    const sessions = join(directory.path, 'terminals')
    const terminals = new Terminals({
      ...common,
      directory: sessions,
      lack,
      changed: () => status.changed(),
    })
    const uplink = new Uplink(runner, new Trouble(clock, log))
    let wasLinked = false
    let cancelProbe = () => {}
    let cancelIdle = () => {}
    const idleLink = options.idleLink ?? 30_000
    const closeWhenIdle = () => {
      cancelIdle()
      cancelIdle = clock.after(idleLink, () => {
        if (uplink.isIdle && terminals.isIdle) void link.close()
        else closeWhenIdle()
      })
    }
    const link = new Link({
      connection,
      agentId,
      token: () => membership.registration.token,
      clock,
      random,
      log,
      opened() {
        status.relinked()
        const tasks = uplink.begin({
          sendReceived: (received) => void link.send('SCRIPT_RECEIVED', received),
          sendComplete: (complete) => link.send('SCRIPT_COMPLETE', complete),
          sendOutput: (about, bytes) => link.sendOutput(about, bytes),
          hasRoom: () => link.hasRoom(),
        })
        const named = terminals.begin({
          send: (type, payload) => void link.send(type, payload),
          hasRoom: () => link.hasRoom(),
        })
        linkId = randomBytes(12).toString('base64url')
        const heard = mark()
        link.send('AGENT_HELLO', {
          agentVersion: agentVersion(),
          storeId: journal.storeId,
          instanceId,
          journal: { sequence: journal.sequence },
          ...(heard ? { mark: heard } : {}),
          linkId,
          capabilities: capabilities(script, bounds, {
            maxExecutions: options.maxExecutions,
            terminal: lack === null,
          }),
          tasks,
          ...(lack === null ? { terminals: named } : {}),
        })
        for (const message of distrust.tell()) link.send('ERROR', { code: 403, message, refId: null })
        cancelProbe = clock.after(helloPatience, () => uplink.probe())
        if (options.onDemand) closeWhenIdle()
        if (wasLinked) pulse.beatNow()
        wasLinked = true
      },
      received: (message) => {
        receive(message)
        status.changed()
        if (options.onDemand) closeWhenIdle()
      },
      drained() {
        // Neither a flood of a script nor one of a session holds up the other's.
        while (terminals.turn()) uplink.flow()
        uplink.flow()
      },
      closed() {
        status.relinked()
        cancelProbe()
        cancelIdle()
        uplink.end()
        terminals.end()
      },
      revoked: () => log('ERROR', 'the server has revoked the token of this agent', { agentId }),
    })
    const sources = {
      agentId,
      options,
      runner,
      terminals,
      lack,
      link,
      script,
      bounds,
      serverTime,
      clock,
      log,
    }
    const status = new StatusFile(directory.path, sources, () => membership.registration.hostId)
    opened.unshift(() => status.remove())
    const receive = inbox({ runner, uplink, terminals, log })

    // Two that take the place of each other must not do so without a pause.
    const enrolling = new Allowance(enrolmentsAtOnce, revokedDelay)
    const pulse = new Pulse({
      api,
      agentId,
      dataDir: directory.path,
      clock,
      random,
      buffer: await MetricsBuffer.open(join(directory.path, 'metrics.jsonl')),
      // By the server's clock: a step of this machine's own would make reports look old, or older than they are.
      measure: meter({ ...clock, now: () => serverTime.now() }, log),
      intervals: membership.registration,
      onDemand: options.onDemand,
      linkFault: () => link.fault,
      mark,
      marked: (given) => journal.heard(given, membership.registration.keyId),
      log,
      reached(wasAway) {
        status.heard()
        runner.sweep()
        // The link comes after the first answer, as signatures are judged by the server's clock.
        if (!options.onDemand || !uplink.isIdle) link.open()
        if (wasAway) link.retryNow()
      },
      missed: (reason) => status.unheard(reason),
      configured(config) {
        level = options.logLevel ?? config.logLevel
        if (config.pendingTasks.length > 0) link.open()
      },
      async revoked() {
        log('ERROR', 'the token of this agent is not valid any more', {
          hint: 'enrol the host anew: `rsm hosts join --replace HOST`, or `rsm hosts join` where it was removed, and give the agent that token',
        })
        if (options.enrollToken === undefined || enrolling.take(agentId, clock.monotonic()) > 0) return false
        return membership.registerAnew().then(
          () => true,
          (error: unknown) => {
            if (signal.aborted) return false
            log('ERROR', 'not registered anew', { error: String(error) })
            if (error instanceof RsmError) status.unheard(error.message)
            return false
          },
        )
      },
    })
    await sweepSessions(sessions, common)
    await runner.recover()
    status.changed()
    pulse.start()
    let stopped: Promise<void> | undefined
    let settle = () => {}
    const whenClosed = new Promise<void>((resolve) => {
      settle = resolve
    })
    const stop = async () => {
      if (options.drain) {
        log('INFO', 'draining')
        await runner.drain()
        for (let waited = 0; link.isOpen && !runner.isDrained && waited < drainPatience; waited += drainLook)
          await new Promise<void>((resolve) => clock.after(drainLook, resolve))
      }
      // First nothing new comes in, sessions end and say so, then nothing goes out, then the files close, then another agent may have them.
      stopping.abort()
      pulse.stop()
      await terminals.stop()
      await link.close(stoppedReason)
      uplink.end()
      await runner.stop()
      cancelProbe()
      cancelIdle()
      for (const close of opened) await close()
      settle()
    }
    return {
      agentId,
      get hostId() {
        return membership.registration.hostId
      },
      linked: () => link.isOpen,
      closed: whenClosed,
      stop: () => (stopped ??= stop()),
    }
  }
}
