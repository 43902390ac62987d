import type { FromAgent, FromServer, Message, MessageType } from './messages.ts'
import { largestScreen, longestSentence } from './messages.ts'
import { splitOutput } from './output-frame.ts'
import { list, map, nullable, number, object, oneOf, optional, type Shape, text, truth } from './shape.ts'
import type { FromTerminalClient } from './terminal-messages.ts'

const finalStatuses = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'LOST'] as const
const most = Number.MAX_SAFE_INTEGER
const id = text({ pattern: /^[A-Za-z0-9_-]{1,64}$/ })
const sequence = number({ integer: true, minimum: 0, maximum: most })
/** -1: none yet. */
const lastSequence = number({ integer: true, minimum: -1, maximum: most })
const bytes = number({ integer: true, minimum: 0, maximum: most })
/** Printable: people are shown it as it is. */
const signal = text({ pattern: /^[ -~]{0,32}$/ })
const sentence = text({ maxLength: longestSentence })
/** Of a frame, where an ERROR names it. */
const longestId = 128
/** An X25519 key, or a MAC of SHA-256: 32 bytes, base64url. */
const bytes32 = optional(text({ pattern: /^[A-Za-z0-9_-]{43}$/ }))
const maybeText = optional(text())
const scriptType = oneOf('BASH', 'PYTHON', 'POWERSHELL')
const size = number({ integer: true, minimum: 1, maximum: largestScreen })
const journal = object({ sequence })
const mark = object({ run: id, sequence })
const limit = number({ integer: true, minimum: 1, maximum: most })

/** What the payload of each type looks like. */
const payloads: Record<MessageType, Shape> = {
  EXECUTE_SCRIPT: object({
    taskId: id,
    script: text(),
    timeout: number({ minimum: 0 }),
    params: map(text()),
    workDir: maybeText,
    scriptType,
    runAs: maybeText,
    limits: optional(
      object({ memoryMB: optional(limit), processes: optional(limit), cpuPercent: optional(limit) }),
    ),
    maxOutputBytes: bytes,
    mark: optional(mark),
    expiry: maybeText,
    signature: maybeText,
    keyId: maybeText,
    linkId: maybeText,
  }),
  SCRIPT_RECEIVED: object({ taskId: id, journal }),
  SCRIPT_OUTPUT: object({ taskId: id, stream: oneOf('stdout', 'stderr'), data: text(), sequence }),
  SCRIPT_COMPLETE: object({
    taskId: id,
    exitCode: number({ integer: true, minimum: -1, maximum: 255 }),
    duration: number(),
    startedAt: text(),
    completedAt: text(),
    status: optional(oneOf(...finalStatuses)),
    signal: optional(nullable(signal)),
    error: optional(nullable(sentence)),
    lastSequence: optional(lastSequence),
    stdoutBytes: optional(bytes),
    stderrBytes: optional(bytes),
    truncated: optional(truth),
    // A level that this server does not know is a newer agent's, and no reason to lose an end.
    containment: optional(nullable(text({ maxLength: 64 }))),
    survivors: optional(
      list(
        object({
          pid: number({ integer: true, minimum: 1, maximum: most }),
          command: text({ maxLength: 64 }),
        }),
        20,
      ),
    ),
  }),
  SCRIPT_ACK: object({ taskId: id, sequence: optional(lastSequence), complete: optional(oneOf(true)) }),
  CANCEL_SCRIPT: object({ taskId: id }),
  AGENT_HELLO: object({
    agentVersion: text({ maxLength: 256 }),
    storeId: id,
    instanceId: optional(id),
    journal: optional(journal),
    mark: optional(mark),
    linkId: optional(id),
    capabilities: object({
      maxExecutions: number({ integer: true, minimum: 1, maximum: 100_000 }),
      scriptTypes: list(scriptType, 8),
      containment: oneOf('cgroup', 'pid-namespace', 'process-group'),
      terminal: truth,
      runAs: optional(text({ maxLength: 256 })),
      runsAsRoot: optional(truth),
      sandbox: optional(oneOf('none', 'user', 'strict')),
      // Names of limits that this server does not know are a newer agent's: no task here can ask for them.
      limits: optional(list(text({ maxLength: 64 }), 64)),
    }),
    tasks: list(object({ taskId: id, state: oneOf('QUEUED', 'RUNNING', 'EXITED'), lastSequence }), 100_000),
    terminals: optional(list(object({ sessionId: id, lastSequence }), 1000)),
  }),
  TERMINAL_OPEN: object({
    sessionId: id,
    cols: size,
    rows: size,
    runAs: maybeText,
    shell: maybeText,
    term: maybeText,
    command: maybeText,
    noStdin: optional(oneOf(true)),
    after: optional(lastSequence),
    expiry: maybeText,
    signature: maybeText,
    keyId: maybeText,
    inputKey: bytes32,
    linkId: maybeText,
  }),
  TERMINAL_OPENED: object({ sessionId: id, inputKey: bytes32 }),
  TERMINAL_INPUT: object({ sessionId: id, data: text(), counter: optional(sequence), mac: bytes32 }),
  TERMINAL_OUTPUT: object({ sessionId: id, data: text(), sequence: optional(sequence) }),
  TERMINAL_ACK: object({ sessionId: id, sequence: lastSequence }),
  TERMINAL_RESIZE: object({
    sessionId: id,
    cols: size,
    rows: size,
    counter: optional(sequence),
    mac: bytes32,
  }),
  TERMINAL_CLOSE: object({ sessionId: id }),
  TERMINAL_CLOSED: object({
    sessionId: id,
    exitCode: nullable(number({ integer: true })),
    signal: nullable(signal),
    reason: nullable(sentence),
  }),
  ERROR: object({
    code: number(),
    message: sentence,
    refId: optional(nullable(text({ maxLength: longestId }))),
    sessionId: optional(id),
  }),
}

const fromAgent = new Set<string>([
  'SCRIPT_RECEIVED',
  'SCRIPT_OUTPUT',
  'SCRIPT_COMPLETE',
  'AGENT_HELLO',
  'TERMINAL_OPENED',
  'TERMINAL_OUTPUT',
  'TERMINAL_CLOSED',
  'ERROR',
])
const fromServer = new Set<string>([
  'EXECUTE_SCRIPT',
  'SCRIPT_ACK',
  'CANCEL_SCRIPT',
  'TERMINAL_OPEN',
  'TERMINAL_INPUT',
  'TERMINAL_ACK',
  'TERMINAL_RESIZE',
  'TERMINAL_CLOSE',
  'ERROR',
])

const fromTerminalClient = new Set<string>([
  'TERMINAL_INPUT',
  'TERMINAL_RESIZE',
  'TERMINAL_ACK',
  'TERMINAL_CLOSE',
  'ERROR',
])

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

function decode(frame: string, types: ReadonlySet<string>): Message | FrameFault {
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
  if (!types.has(type))
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
  return decode(frame, fromAgent) as FromAgent | FrameFault
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
  return decode(frame, fromServer) as FromServer | FrameFault
}

/** A frame that a client of a terminal sent, or what is wrong with it. */
export function decodeFromTerminalClient(frame: string): FromTerminalClient | FrameFault {
  return decode(frame, fromTerminalClient) as FromTerminalClient | FrameFault
}

export function isFault(frame: object): frame is FrameFault {
  return 'fault' in frame
}

// On its own, as an agent that only says HELLO needs no validator in its memory.
export { encode } from './envelope.ts'
