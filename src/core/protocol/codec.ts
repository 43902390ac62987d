import { Ajv, type ValidateFunction } from 'ajv'
import { Type } from 'typebox'
import { OpaqueId } from './http/common.ts'
import { Stream } from './http/tasks.ts'
import type { FromAgent, FromServer, Message, MessageType } from './messages.ts'

const finalStatuses = ['SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'LOST'] as const
const Sequence = Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })
const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Text = Type.String({ maxLength: 4096 })
const Maybe = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) => Type.Optional(schema)
const signed = { expiry: Type.String(), signature: Type.String(), keyId: Type.String() }
const session = { sessionId: OpaqueId }
const size = Type.Integer({ minimum: 1, maximum: 10_000 })

/** Payload schemas by type; unknown fields are ignored, so either side may be newer. */
const schemas: Record<MessageType, object> = {
  EXECUTE_SCRIPT: Type.Object({
    taskId: OpaqueId,
    script: Type.String(),
    timeout: Type.Number({ minimum: 0 }),
    params: Type.Record(Type.String(), Type.String()),
    workDir: Maybe(Type.String()),
    scriptType: Type.Enum(['BASH', 'PYTHON', 'POWERSHELL']),
    runAs: Maybe(Type.String()),
    maxOutputBytes: Bytes,
    expiry: Maybe(Type.String()),
    signature: Maybe(Type.String()),
    keyId: Maybe(Type.String()),
  }),
  SCRIPT_OUTPUT: Type.Object({
    taskId: OpaqueId,
    stream: Stream,
    data: Type.String(),
    sequence: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  }),
  SCRIPT_COMPLETE: Type.Object({
    taskId: OpaqueId,
    exitCode: Type.Integer({ minimum: -1, maximum: 255 }),
    duration: Type.Number(),
    startedAt: Type.String(),
    completedAt: Type.String(),
    status: Maybe(Type.Enum([...finalStatuses])),
    signal: Maybe(Type.Union([Type.String({ maxLength: 32 }), Type.Null()])),
    error: Maybe(Type.Union([Text, Type.Null()])),
    lastSequence: Maybe(Sequence),
    stdoutBytes: Maybe(Bytes),
    stderrBytes: Maybe(Bytes),
    truncated: Maybe(Type.Boolean()),
  }),
  SCRIPT_ACK: Type.Object({
    taskId: OpaqueId,
    sequence: Maybe(Sequence),
    complete: Maybe(Type.Literal(true)),
  }),
  CANCEL_SCRIPT: Type.Object({ taskId: OpaqueId }),
  AGENT_HELLO: Type.Object({
    agentVersion: Type.String({ maxLength: 256 }),
    storeId: OpaqueId,
    capabilities: Type.Object({
      maxExecutions: Type.Integer({ minimum: 1, maximum: 100_000 }),
      scriptTypes: Type.Array(Type.Enum(['BASH', 'PYTHON', 'POWERSHELL']), { maxItems: 8 }),
      containment: Type.Enum(['cgroup', 'process-group']),
      terminal: Type.Boolean(),
    }),
    tasks: Type.Array(
      Type.Object({
        taskId: OpaqueId,
        state: Type.Enum(['QUEUED', 'RUNNING', 'EXITED']),
        lastSequence: Sequence,
      }),
      { maxItems: 100_000 },
    ),
  }),
  TERMINAL_OPEN: Type.Object({
    ...session,
    cols: size,
    rows: size,
    runAs: Maybe(Type.String()),
    shell: Maybe(Type.String()),
    term: Maybe(Type.String()),
    ...signed,
  }),
  TERMINAL_OPENED: Type.Object(session),
  TERMINAL_INPUT: Type.Object({ ...session, data: Type.String() }),
  TERMINAL_OUTPUT: Type.Object({ ...session, data: Type.String() }),
  TERMINAL_RESIZE: Type.Object({ ...session, cols: size, rows: size }),
  TERMINAL_CLOSE: Type.Object(session),
  TERMINAL_CLOSED: Type.Object({
    ...session,
    exitCode: Type.Union([Type.Integer(), Type.Null()]),
    signal: Type.Union([Type.String(), Type.Null()]),
    reason: Type.Union([Text, Type.Null()]),
  }),
  ERROR: Type.Object({
    code: Type.Number(),
    message: Text,
    refId: Maybe(Type.Union([Type.String(), Type.Null()])),
  }),
}

const fromAgent = new Set<string>([
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
  'TERMINAL_RESIZE',
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

const ajv = new Ajv({ strict: false })
const compiled = new Map<string, ValidateFunction>()

/** Compiled at the first frame of a type: an idle agent pays for none. */
function validator(type: MessageType): ValidateFunction {
  let validate = compiled.get(type)
  if (!validate) {
    validate = ajv.compile(schemas[type])
    compiled.set(type, validate)
  }
  return validate
}

function decode(text: string, types: ReadonlySet<string>): Message | FrameFault {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { fault: 'protocol', message: 'the frame is not JSON', refId: null, isError: false }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: 'protocol', message: 'the frame is not a JSON object', refId: null, isError: false }
  const { type, id, payload } = value as Record<string, unknown>
  const refId = typeof id === 'string' && id.length <= 128 ? id : null
  if (typeof type !== 'string' || typeof id !== 'string')
    return { fault: 'protocol', message: 'the frame lacks type or id', refId, isError: false }
  if (!types.has(type))
    return {
      fault: 'unknown-type',
      message: `unknown message type ${JSON.stringify(type.slice(0, 64))}`,
      refId,
      isError: false,
    }
  const validate = validator(type as MessageType)
  if (!validate(payload)) {
    const first = validate.errors?.[0]
    const at = first?.instancePath.slice(1).replaceAll('/', '.')
    const message = `${type}: payload${at ? `.${at}` : ''} ${first?.message ?? 'is malformed'}`
    return { fault: 'payload', message, refId, isError: type === 'ERROR' }
  }
  return value as Message
}

/** A frame that an agent sent, or what is wrong with it. */
export function decodeFromAgent(text: string): FromAgent | FrameFault {
  return decode(text, fromAgent) as FromAgent | FrameFault
}

/** A frame that the server sent, or what is wrong with it. */
export function decodeFromServer(text: string): FromServer | FrameFault {
  return decode(text, fromServer) as FromServer | FrameFault
}

export function isFault(frame: Message | FrameFault): frame is FrameFault {
  return 'fault' in frame
}

// On its own, as an agent that only says HELLO needs no validator in its memory.
export { encode } from './envelope.ts'
