import { clientSends, type FromTerminalClient } from '../terminals/terminal.ts'
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
import { splitOutput } from './wire-text.ts'

/** Fault of a frame: `protocol` closes the link (4400), any other is answered with ERROR. */
export interface FrameFault {
  readonly fault: 'protocol' | 'unknown-type' | 'payload'
  readonly message: string
  readonly refId: string | null
  /** Whether the frame is itself an ERROR, which is never answered with one. */
  readonly isError: boolean
}

/** Bounds a fault's message, because it quotes names of params of any length. */
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

export function decodeFromAgent(frame: string): FromAgent | FrameFault {
  return decode(frame, agentSends) as FromAgent | FrameFault
}

/** Decodes a frame's bytes. If it is output built like that of our agents, `json` is its text as JSON, in UTF-8. */
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

export function decodeFromServer(frame: string): FromServer | FrameFault {
  return decode(frame, serverSends) as FromServer | FrameFault
}

export function decodeFromTerminalClient(frame: string): FromTerminalClient | FrameFault {
  return decode(frame, clientSends) as FromTerminalClient | FrameFault
}

export function isFault(frame: object): frame is FrameFault {
  return 'fault' in frame
}

// In its own file, so that an agent that only sends HELLO loads no validators.
export { encode } from './wire-text.ts'
