import {
  agentSends,
  type FromAgent,
  type FromServer,
  longestId,
  type Message,
  type MessageType,
  payloads,
  serverSends,
} from './messages.ts'
import { clientSends, type FromTerminalClient } from './terminal-messages.ts'
import { splitOutput } from './wire-text.ts'

/** What is wrong with a frame: a `protocol` fault closes the link (4400), any other is answered with ERROR. */
export interface FrameFault {
  readonly fault: 'protocol' | 'unknown-type' | 'payload'
  readonly message: string
  readonly refId: string | null
  /** Whether the frame is itself an ERROR, which is never answered with one. */
  readonly isError: boolean
}

/** Names of params stand in the sentence, and are as long as the sender likes. */
const longestFault = 1000

function decode(frame: string, types: readonly string[]): Message | FrameFault {
  let value: unknown
  try {
    value = JSON.parse(frame)
  } catch {
    return { fault: 'protocol', message: 'the frame is not JSON', refId: null, isError: false }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: 'protocol', message: 'the frame is not a JSON object', refId: null, isError: false }
  const { type, id: frameId, payload } = value as Record<string, unknown>
  const refId = typeof frameId === 'string' && frameId.length <= longestId ? frameId : null
  if (typeof type !== 'string' || typeof frameId !== 'string')
    return { fault: 'protocol', message: 'the frame lacks type or id', refId, isError: false }
  if (!types.includes(type))
    return {
      fault: 'unknown-type',
      message: `unknown message type ${JSON.stringify(type.slice(0, 64))}`,
      refId,
      isError: false,
    }
  const fault = payloads[type as MessageType](payload, 'payload')
  if (fault) {
    const message = `${type}: ${fault}`.slice(0, longestFault)
    return { fault: 'payload', message, refId, isError: type === 'ERROR' }
  }
  return value as Message
}

/** A frame that an agent sent, or what is wrong with it. */
export function decodeFromAgent(frame: string): FromAgent | FrameFault {
  return decode(frame, agentSends) as FromAgent | FrameFault
}

/** The same of a frame's bytes; beside output that comes as JSON in one piece stands that piece, in UTF-8. */
export function readFromAgent(frame: Buffer): { message: FromAgent | FrameFault; json?: Uint8Array } {
  const split = splitOutput(frame)
  const message = split && decodeFromAgent(split.head)
  if (!message || isFault(message)) return { message: decodeFromAgent(frame.toString('utf8')) }
  const { data, json } = split
  if (message.type === 'SCRIPT_OUTPUT')
    return { message: { ...message, payload: { ...message.payload, data } }, json }
  if (message.type === 'TERMINAL_OUTPUT')
    return { message: { ...message, payload: { ...message.payload, data } }, json }
  return { message: decodeFromAgent(frame.toString('utf8')) }
}

/** A frame that the server sent, or what is wrong with it. */
export function decodeFromServer(frame: string): FromServer | FrameFault {
  return decode(frame, serverSends) as FromServer | FrameFault
}

/** A frame that a client of a terminal sent, or what is wrong with it. */
export function decodeFromTerminalClient(frame: string): FromTerminalClient | FrameFault {
  return decode(frame, clientSends) as FromTerminalClient | FrameFault
}

export function isFault(frame: object): frame is FrameFault {
  return 'fault' in frame
}

// On its own, as an agent that only says HELLO needs no validator in its memory.
export { encode } from './wire-text.ts'
