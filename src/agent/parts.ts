import { chmodSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Connection } from '../net/connect.ts'
import type { AgentOptions } from './agent-options.ts'
import { type Clock, ServerTime } from './clock.ts'
import { Journal } from './executions/journal.ts'
import { Runner } from './executions/runner.ts'
import { fileWork } from './files/order.ts'
import { Link } from './link/link.ts'
import { openMembership } from './link/membership.ts'
import { Outbox } from './link/outbox.ts'
import { Distrust } from './link/verify.ts'
import { type Log, ThrottledErrors } from './log.ts'
import { thisMachine } from './processes/machine.ts'
import { type checkAccounts, checkBounds, checkSandbox } from './processes/script-setting.ts'
import { AgentStatus } from './reports/agent-state.ts'
import { diskSizeHourly, systemFacts } from './reports/facts.ts'
import { Heartbeat } from './reports/heartbeat.ts'
import { MetricsBuffer, meter } from './reports/metrics.ts'
import { StatusFile } from './reports/status-file.ts'
import { lackOfTerminal } from './terminals/native.ts'
import { Terminals } from './terminals/terminals.ts'
import { upgradeWork } from './upgrade/order.ts'

export interface Bootstrap {
  readonly options: AgentOptions
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly connection: Connection
  readonly accounts: Awaited<ReturnType<typeof checkAccounts>>
  readonly enrollToken: string | null
  readonly dataDir: string
  /** Aborts a registration that waits for its server. */
  readonly signal: AbortSignal
  /** Closed in this order at the end; put new ones first. */
  readonly opened: (() => unknown)[]
}

/** Checks how scripts run here, and registers the agent if it is new. */
export async function enter(bootstrap: Bootstrap) {
  const { options, clock, log, accounts, dataDir, opened } = bootstrap
  const statusFile = new StatusFile(dataDir, clock, log)
  opened.unshift(() => statusFile.remove())
  // Check first: a host that cannot run scripts as configured must not register.
  const script = await checkSandbox(options, accounts, dataDir)
  const serverTime = new ServerTime(clock)
  const membership = await openMembership({
    ...bootstrap,
    directory: dataDir,
    script,
    serverTime,
    status: statusFile,
  })
  return { ...bootstrap, statusFile, script, serverTime, membership }
}

/** Parts of a registered agent; each uses those above it, and notifies others through subscriptions. */
export async function openParts(entered: Awaited<ReturnType<typeof enter>>) {
  const { options, clock, random, log, connection, dataDir, opened } = entered
  const { statusFile, script, serverTime, membership } = entered
  const { agentId, api } = membership
  const journal = new Journal(join(dataDir, 'journal'), () => clock.monotonic())
  opened.unshift(() => journal.close())
  const mark = () => journal.markFrom(membership.registration.keyId)
  const bounds = checkBounds(journal.storeId, script.sandbox.mode, options.limits)
  const distrust = new Distrust(clock, log)
  const token = () => membership.registration.token
  const link = new Link({ connection, agentId, token, clock, random, log })
  const size = diskSizeHourly(clock, options.diskSize)
  const heartbeat = new Heartbeat({
    api,
    agentId,
    dataDir,
    clock,
    random,
    buffer: await MetricsBuffer.open(join(dataDir, 'metrics.jsonl')),
    // By the server's clock, so that a step of this machine's clock does not change the times of reports.
    measure: meter({ ...clock, now: () => serverTime.now() }, log),
    facts: () => systemFacts(size),
    intervals: membership.registration,
    says: async () => ({ onDemand: options.onDemand, linkFault: link.fault }),
    mark,
    onMark: (given) => journal.noteMark(given, membership.registration.keyId),
    log,
  })
  const spool = join(dataDir, 'executions')
  const sessions = join(dataDir, 'terminals')
  for (const passed of [spool, sessions]) {
    mkdirSync(passed, { recursive: true })
    chmodSync(passed, script.hasOthers ? 0o711 : 0o700)
  }
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
    hearServerTime: () => heartbeat.hearServerTime(),
  }
  const { url, caFile, tlsFingerprint, installed, environment } = options
  const source = { dataDir, url, caFile: caFile && resolve(caFile), tlsFingerprint, environment }
  const upgrade = installed === undefined ? null : upgradeWork({ ...source, installed })
  const files = fileWork(source)
  const runner = new Runner({
    ...common,
    directory: spool,
    maxExecutions: options.maxExecutions,
    upgrade,
    files,
  })
  const lack = options.noTerminal ? 'it was started with --no-terminal' : lackOfTerminal(sessions)
  const terminals = new Terminals({ ...common, directory: sessions, lack })
  const outbox = new Outbox(runner, new ThrottledErrors(clock, log))
  const sources = {
    options,
    membership,
    link,
    script,
    bounds,
    runner,
    terminals,
    lack,
    serverTime,
    clock,
  }
  const status = new AgentStatus(statusFile, sources)
  runner.subscribe(status)
  terminals.subscribe(status)
  return {
    ...entered,
    ...common,
    journal,
    mark,
    bounds,
    distrust,
    link,
    heartbeat,
    runner,
    lack,
    sessions,
    terminals,
    outbox,
    status,
  }
}

export type Parts = Awaited<ReturnType<typeof openParts>>
