import { randomBytes } from 'node:crypto'
import { longestReason } from '../../core/protocol/bounds.ts'
import type { FromServer, MessageType, Payloads } from '../../core/protocol/messages.ts'
import { scriptOrder } from '../../core/protocol/orders.ts'
import { shortened } from '../../core/text/pieces.ts'
import type { Runner } from '../executions/runner.ts'
import type { Log } from '../log.ts'
import type { Parts } from '../parts.ts'
import { installedTypes } from '../processes/launch.ts'
import { settingHere } from '../processes/script-setting.ts'
import { agentVersion } from '../reports/facts.ts'
import type { Terminals } from '../terminals/terminals.ts'
import { confirm, releasesIn } from '../upgrade/installed.ts'
import type { Outbox } from './outbox.ts'

/** Milliseconds to wait for an answer to HELLO before unanswered tasks are sent anyway. */
const helloPatience = 10_000

/** Milliseconds without work after which a link on demand is closed. */
const usualIdleLink = 30_000

type Hello = Payloads['AGENT_HELLO']

/** Sends HELLO over each new link and dispatches its messages. `stop` ends its timers. */
export function converse(parts: Parts): { stop(): void } {
  const { link, heartbeat, runner, outbox, terminals, distrust, status, options, clock, log, dataDir } = parts
  const instanceId = randomBytes(12).toString('base64url')
  const receive = inbox({ runner, outbox, terminals, log })
  let wasLinked = false
  let cancelProbe = () => {}
  let cancelIdle = () => {}

  function closeWhenIdle(): void {
    cancelIdle()
    cancelIdle = clock.after(options.idleLink ?? usualIdleLink, () => {
      if (outbox.isIdle && terminals.isIdle) void link.close()
      else closeWhenIdle()
    })
  }

  function stop(): void {
    cancelProbe()
    cancelIdle()
  }

  link.subscribe({
    opened() {
      status.relinked()
      const tasks = outbox.begin({
        sendReceived: (received) => void link.send('SCRIPT_RECEIVED', received),
        sendPhase: (reached) => void link.send('SCRIPT_PHASE', reached),
        sendComplete: (complete) => link.send('SCRIPT_COMPLETE', complete),
        sendOutput: (about, bytes) => link.sendOutput(about, bytes),
        hasRoom: () => link.hasRoom(),
      })
      const sessions = terminals.begin({
        send: (type, payload) => void link.send(type, payload),
        hasRoom: () => link.hasRoom(),
      })
      link.send('AGENT_HELLO', hello(parts, instanceId, tasks, sessions))
      confirm(releasesIn(dataDir), agentVersion()).catch((error: unknown) =>
        log('WARN', 'could not record that this version is linked', { error: String(error) }),
      )
      for (const message of distrust.messages()) link.send('ERROR', { code: 403, message, refId: null })
      cancelProbe = clock.after(helloPatience, () => outbox.probe())
      if (options.onDemand) closeWhenIdle()
      if (wasLinked) heartbeat.beatNow()
      wasLinked = true
    },
    received(message) {
      receive(message)
      if (options.onDemand) closeWhenIdle()
    },
    drained() {
      // Alternate, so that a flood of a script or session does not hold up the other kind.
      while (terminals.sendRound()) outbox.flow()
      outbox.flow()
    },
    closed() {
      status.relinked()
      stop()
      outbox.end()
      terminals.end()
    },
  })
  return { stop }
}

function hello(
  { journal, membership, mark, script, bounds, options, lack }: Parts,
  instanceId: string,
  tasks: Hello['tasks'],
  sessions: NonNullable<Hello['terminals']>,
): Hello {
  const runMark = mark()
  const { enforces: limits, ...setting } = settingHere(script, bounds)
  return {
    agentVersion: agentVersion(),
    storeId: journal.storeId,
    instanceId,
    journal: { sequence: journal.sequence },
    ...(runMark ? { mark: runMark } : {}),
    linkId: membership.newLink(),
    capabilities: {
      maxExecutions: options.maxExecutions,
      scriptTypes: installedTypes(),
      terminal: lack === null,
      ...(lack === null ? {} : { terminalLack: shortened(lack, longestReason - 1) }),
      files: true,
      gates: true,
      limits,
      ...setting,
    },
    tasks,
    ...(lack === null ? { terminals: sessions } : {}),
  }
}

type Handlers = { [T in FromServer['type']]: (payload: Payloads[T]) => void }

interface InboxOptions {
  readonly runner: Runner
  readonly outbox: Outbox
  readonly terminals: Terminals
  readonly log: Log
}

/** Dispatches messages of the server, whose shape the codec has checked. */
function inbox({ runner, outbox, terminals, log }: InboxOptions): (message: FromServer) => void {
  const handlers: Handlers = {
    EXECUTE_SCRIPT: (payload) => void runner.execute(scriptOrder(payload)),
    COPY_FILE: (payload) => void runner.execute({ ...payload, kind: 'COPY' }),
    FETCH_FILE: (payload) => void runner.execute({ ...payload, kind: 'FETCH' }),
    CANCEL_SCRIPT: ({ taskId }) => runner.cancel(taskId),
    SCRIPT_ACK: (ack) => outbox.acknowledged(ack),
    TERMINAL_OPEN: (request) => void terminals.open(request),
    TERMINAL_INPUT: (input) => terminals.input(input),
    TERMINAL_ACK: (ack) => terminals.acknowledged(ack),
    TERMINAL_RESIZE: (size) => terminals.resize(size),
    TERMINAL_CLOSE: (which) => terminals.close(which),
    ERROR: ({ code, message, refId = null }) => {
      log('WARN', 'the server refused a message', { code, reason: message, refId })
      outbox.refused(refId, code)
    },
  }
  return (message) => {
    const handle = handlers[message.type] as (payload: Payloads[MessageType]) => void
    handle(message.payload)
  }
}
