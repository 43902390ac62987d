import type { FromServer, MessageType, Payloads } from '../../core/protocol/messages.ts'
import type { Runner } from '../executions/runner.ts'
import type { Log } from '../log.ts'
import type { Uplink } from './uplink.ts'

type Handlers = { [T in FromServer['type']]: (payload: Payloads[T]) => void }

interface InboxOptions {
  readonly runner: Runner
  readonly uplink: Uplink
  readonly send: (type: 'TERMINAL_CLOSED', payload: Payloads['TERMINAL_CLOSED']) => void
  readonly log: Log
}

/** What each message of the server does; the codec has vouched for its shape. */
export function inbox({ runner, uplink, send, log }: InboxOptions): (message: FromServer) => void {
  const withoutTerminal = () => {
    // Frames of a session that was never opened here.
  }
  const handlers: Handlers = {
    EXECUTE_SCRIPT: (request) => void runner.execute(request),
    CANCEL_SCRIPT: ({ taskId }) => runner.cancel(taskId),
    SCRIPT_ACK: (ack) => uplink.acknowledged(ack),
    TERMINAL_OPEN: ({ sessionId }) =>
      send('TERMINAL_CLOSED', {
        sessionId,
        exitCode: null,
        signal: null,
        reason: 'this agent has no terminal facility',
      }),
    TERMINAL_INPUT: withoutTerminal,
    TERMINAL_ACK: withoutTerminal,
    TERMINAL_RESIZE: withoutTerminal,
    TERMINAL_CLOSE: withoutTerminal,
    ERROR: ({ code, message, refId }) => {
      log('WARN', 'the server refused a message', { code, reason: message, refId })
      uplink.refused(refId, code)
    },
  }
  return (message) => {
    const handle = handlers[message.type] as (payload: Payloads[MessageType]) => void
    handle(message.payload)
  }
}
