import type { FromServer, MessageType, Payloads } from '../../core/protocol/messages.ts'
import type { Runner } from '../executions/runner.ts'
import { orderOf, scriptOrder } from '../files/order.ts'
import type { Log } from '../log.ts'
import type { Terminals } from '../terminals/terminals.ts'
import type { Outbox } from './outbox.ts'

type Handlers = { [T in FromServer['type']]: (payload: Payloads[T]) => void }

interface InboxOptions {
  readonly runner: Runner
  readonly outbox: Outbox
  readonly terminals: Terminals
  readonly log: Log
}

/** What each message of the server does; the codec has vouched for its shape. */
export function inbox({ runner, outbox, terminals, log }: InboxOptions): (message: FromServer) => void {
  const handlers: Handlers = {
    EXECUTE_SCRIPT: (request) => void runner.execute(scriptOrder(request)),
    COPY_FILE: (order) => void runner.execute(orderOf(order)),
    FETCH_FILE: (order) => void runner.execute(orderOf(order)),
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
