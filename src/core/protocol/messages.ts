import { scriptFileName } from '../scripts/script-form.ts'
import { gateStatuses, mostRetries, phases } from '../tasks/gates.ts'
import { largestScreen, longestSentence } from './bounds.ts'
import { copy, fetch, file, rollback, scriptType, upgrade, verify } from './order-fields.ts'
import { type Infer, list, map, nullable, number, object, oneOf, optional, text, truth } from './shape.ts'

const most = Number.MAX_SAFE_INTEGER
const id = text({ pattern: /^[A-Za-z0-9_-]{1,64}$/ })
const sequence = number({ integer: true, minimum: 0, maximum: most })
/** -1: none yet. */
const lastSequence = number({ integer: true, minimum: -1, maximum: most })
const bytes = number({ integer: true, minimum: 0, maximum: most })
/** Printable, because people see it unchanged. */
const signal = text({ pattern: /^[ -~]{0,32}$/ })
const sentence = text({ maxLength: longestSentence })
/** Longest id of a frame, in characters, that an ERROR refers to. */
export const longestId = 128
/** An X25519 key or a SHA-256 MAC: 32 bytes, base64url. */
const bytes32 = text({ pattern: /^[A-Za-z0-9_-]{43}$/ })
const size = number({ integer: true, minimum: 1, maximum: largestScreen })
const limit = number({ integer: true, minimum: 1, maximum: most })

/** Position in an agent's journal: number of lines ever written to it. */
const journal = object({ sequence })
/**
 * Position in a server's store: a start of the server, and the number of the last commit on disk. A store that does
 * not know it was restored from a backup (contract §11).
 */
const mark = object({
  run: id,
  sequence,
  /** HMAC-SHA256 over the agent, `run` and `sequence`, base64url: proves that this server issued the mark. */
  mac: optional(bytes32),
})
export type RunMark = Infer<typeof mark>

/** Fields that signing adds; the agent refuses a message that lacks one. */
const signed = {
  /** ISO 8601 by the server's clock; checked when the message first arrives. */
  expiry: optional(text()),
  /** Ed25519 over type, agentId and every other field of the payload; base64. */
  signature: optional(text()),
  keyId: optional(text()),
  /** The `linkId` of this link's HELLO, if it had one: on any other link the message is a replay. */
  linkId: optional(text()),
}

/** Proves that input comes from the server that signed the TERMINAL_OPEN of this link (contract §7). */
const inputMac = {
  /** 0 after each TERMINAL_OPEN; incremented with each input and each resize. */
  counter: optional(sequence),
  /** HMAC-SHA256 of `macText` (core/terminals/terminal.ts), base64url. */
  mac: optional(bytes32),
}

/** Fields common to COPY_FILE and FETCH_FILE, with the same meaning as in EXECUTE_SCRIPT. */
const fileOrder = {
  taskId: id,
  timeout: number({ minimum: 0 }),
  runAs: optional(text()),
  maxOutputBytes: bytes,
  mark: optional(mark),
  ...signed,
}

/** Input accepted so far: characters of the input stream `by`; '' before any. */
const typed = object({ by: text({ pattern: /^[A-Za-z0-9_-]{0,64}$/ }), count: sequence })

export type UpgradeOrder = Infer<typeof upgrade>
export type FileOfTask = Infer<typeof file>
export type CopyOrder = Infer<typeof copy>
export type FetchOrder = Infer<typeof fetch>

const phase = oneOf(...phases)
const gateStatus = oneOf(...gateStatuses)
const exitCode = number({ integer: true, minimum: -1, maximum: 255 })

/** QUEUED: received, not started; RUNNING; EXITED: ended, not yet acknowledged. */
export type ExecutionState = 'QUEUED' | 'RUNNING' | 'EXITED'
/** A name from a set that later versions extend. */
const name = text({ pattern: /^[!-~]{1,64}$/ })

/** Payload of every message of the agent's WebSocket, by type (contract §6). Unknown fields are ignored. */
export const payloads = {
  /** `timeout` in seconds, 0 = none. A base-protocol agent ignores the fields after `workDir`. */
  EXECUTE_SCRIPT: object({
    taskId: id,
    script: text(),
    timeout: number({ minimum: 0 }),
    params: map(text()),
    workDir: optional(text()),
    scriptType,
    /** File name of the script; default `script`. */
    scriptName: optional(text({ pattern: scriptFileName })),
    runAs: optional(text()),
    /** Sent only to an agent whose HELLO lists each of them as enforced. */
    limits: optional(
      object({ memoryMB: optional(limit), processes: optional(limit), cpuPercent: optional(limit) }),
    ),
    maxOutputBytes: bytes,
    /** Replaces /dev/null as the script's stdin; sent only to an agent whose HELLO has `files`. */
    stdin: optional(file),
    /** Replaces the script, which older agents run instead: it reports that the agent is too old. */
    upgrade: optional(upgrade),
    /** Sent only to an agent whose HELLO has `gates`: any other would ignore them and run the script. */
    verify: optional(verify),
    rollback: optional(rollback),
    /** Sent to agents of ours; older servers leave it out and do not accept SCRIPT_RECEIVED. */
    mark: optional(mark),
    ...signed,
  }),
  /**
   * Writes a file or tree on the host, as `runAs` if given. The execution is received, cancelled and completed with
   * the same messages as a script. Sent only to an agent whose HELLO has `files`.
   */
  COPY_FILE: object({ ...fileOrder, copy }),
  /** Sends a file or tree of the host to the server; otherwise like COPY_FILE. */
  FETCH_FILE: object({ ...fileOrder, fetch }),
  /** The execution is in the agent's journal: the server never sends it again. */
  SCRIPT_RECEIVED: object({ taskId: id, journal }),
  /** An execution with gates entered this phase; never sent for one without. */
  SCRIPT_PHASE: object({ taskId: id, phase }),
  /** `sequence` counts from 0 over both streams and all phases of an execution; `phase` defaults to SCRIPT. */
  SCRIPT_OUTPUT: object({
    taskId: id,
    stream: oneOf('stdout', 'stderr'),
    data: text(),
    sequence,
    phase: optional(phase),
  }),
  /**
   * End of an execution; `duration` in milliseconds. A base-protocol agent sends the first five fields.
   * `lastSequence` is -1 if there was no output. `status` is a final status that a host can determine.
   */
  SCRIPT_COMPLETE: object({
    taskId: id,
    exitCode,
    duration: number(),
    startedAt: text(),
    completedAt: text(),
    status: optional(oneOf('SUCCESS', 'FAILED', 'TIMEOUT', 'CANCELLED', 'LOST')),
    signal: optional(nullable(signal)),
    error: optional(nullable(sentence)),
    lastSequence: optional(lastSequence),
    /** Before truncation. */
    stdoutBytes: optional(bytes),
    stderrBytes: optional(bytes),
    truncated: optional(truth),
    /** For a copy: whether it changed anything, or would have (`check`). Absent if unknown, and for other kinds. */
    changed: optional(truth),
    /** Null if it never started. Accepts unknown levels of newer agents, so that no result is lost. */
    containment: optional(nullable(text({ maxLength: 64 }))),
    /** Processes that survived the kill. Absent although `containment` is set: unknown. */
    survivors: optional(
      list(
        object({
          pid: number({ integer: true, minimum: 1, maximum: most }),
          command: text({ maxLength: 64 }),
        }),
        20,
      ),
    ),
    /** `exitCode` is null if unknown. */
    verify: optional(
      object({
        status: gateStatus,
        exitCode: nullable(exitCode),
        attempts: number({ integer: true, minimum: 0, maximum: mostRetries + 1 }),
      }),
    ),
    rollback: optional(object({ status: gateStatus, exitCode: nullable(exitCode) })),
  }),
  /**
   * All output up to `sequence` is stored; with `complete`, so is the end, and the agent forgets the task. With
   * `noStart`, an agent whose files another agent may share starts nothing more of it (P48).
   */
  SCRIPT_ACK: object({
    taskId: id,
    sequence: optional(lastSequence),
    complete: optional(oneOf(true)),
    noStart: optional(oneOf(true)),
  }),
  CANCEL_SCRIPT: object({ taskId: id }),
  /** `storeId` identifies the agent's journal: a new journal lacks everything sent to the old one. */
  AGENT_HELLO: object({
    agentVersion: text({ maxLength: 256 }),
    storeId: id,
    /** New at each start of the agent's process; 0.1.0 leaves out this and `journal`. */
    instanceId: optional(id),
    journal: optional(journal),
    /** Newest mark that a server gave this agent. */
    mark: optional(mark),
    /** New for each link; the server includes it in each signature on this link. */
    linkId: optional(id),
    capabilities: object({
      maxExecutions: number({ integer: true, minimum: 1, maximum: 100_000 }),
      /** Here and below, unknown names come from newer agents and must not fail the HELLO. */
      scriptTypes: list(name, 64),
      /** How this agent ends process trees. */
      containment: name,
      terminal: truth,
      terminalLack: optional(sentence),
      /** Default user for scripts; older agents leave out this field and the following ones. */
      runAs: optional(text({ maxLength: 256 })),
      /** Whether that user is root (uid 0). */
      runsAsRoot: optional(truth),
      sandbox: optional(name),
      limits: optional(list(text({ maxLength: 64 }), 64)),
      /** Supports COPY_FILE, FETCH_FILE and the stdin of a script. */
      files: optional(truth),
      /** Supports `verify` and `rollback`. */
      gates: optional(truth),
    }),
    /** `state` is an `ExecutionState` or one of a newer agent; `phase` is set for an execution with gates. */
    tasks: list(object({ taskId: id, state: name, lastSequence, phase: optional(name) }), 100_000),
    /** Live sessions; left out by older agents and those without terminals. */
    terminals: optional(list(object({ sessionId: id, lastSequence }), 1000)),
  }),
  /**
   * Opens a session. Sent again on a later link, it resumes the live session. Until then the agent accepts no other
   * message for it from the new link, because input is not signed.
   */
  TERMINAL_OPEN: object({
    sessionId: id,
    cols: size,
    rows: size,
    runAs: optional(text()),
    /** A path, or a name found in PATH; default: the user's login shell. */
    shell: optional(text()),
    /** TERM of the client; default `xterm-256color`. */
    term: optional(text()),
    /** The client shows 24-bit colours: sets COLORTERM to `truecolor`. */
    trueColor: optional(oneOf(true)),
    /** Run by the shell, which is not interactive then; the session ends with it. */
    command: optional(text()),
    /** Sets the command's stdin to /dev/null. */
    noStdin: optional(oneOf(true)),
    /** When resuming: the last output that the server has, -1 for none. Absent when opening. */
    after: optional(lastSequence),
    /** The server's one-time X25519 key; with it, the agent types only input that has a MAC. */
    inputKey: optional(bytes32),
    ...signed,
  }),
  /** `inputKey`: the agent's X25519 key, if the server sent one. `typed`: input accepted, if it is counted. */
  TERMINAL_OPENED: object({ sessionId: id, inputKey: optional(bytes32), typed: optional(typed) }),
  /** `by`: a gapless stream of input; `position`: its characters before `data`. Both or neither. */
  TERMINAL_INPUT: object({
    sessionId: id,
    data: text(),
    by: optional(id),
    position: optional(sequence),
    ...inputMac,
  }),
  /** `sequence` counts the session's frames from 0; a base-protocol agent leaves it out. */
  TERMINAL_OUTPUT: object({ sessionId: id, data: text(), sequence: optional(sequence) }),
  /** All output up to `sequence` was delivered; the PTY pauses while 256 KiB are unacknowledged. */
  TERMINAL_ACK: object({ sessionId: id, sequence: lastSequence }),
  TERMINAL_RESIZE: object({ sessionId: id, cols: size, rows: size, ...inputMac }),
  TERMINAL_CLOSE: object({ sessionId: id }),
  /** End of a session; `reason` is a sentence if the shell did not start or did not exit on its own. */
  TERMINAL_CLOSED: object({
    sessionId: id,
    exitCode: nullable(number({ integer: true })),
    signal: nullable(signal),
    reason: nullable(sentence),
  }),
  /** `sessionId`: the terminal session, if it is not about a frame; then 413 from an agent reports dropped input. */
  ERROR: object({
    code: number(),
    message: sentence,
    refId: optional(nullable(text({ maxLength: longestId }))),
    sessionId: optional(id),
  }),
}

export type MessageType = keyof typeof payloads
export type Payloads = { [T in MessageType]: Infer<(typeof payloads)[T]> }
export type ExecuteScript = Payloads['EXECUTE_SCRIPT']
export type CopyFile = Payloads['COPY_FILE']
export type FetchFile = Payloads['FETCH_FILE']
export type ScriptReceived = Payloads['SCRIPT_RECEIVED']
export type ScriptPhase = Payloads['SCRIPT_PHASE']
export type ScriptOutput = Payloads['SCRIPT_OUTPUT']
export type ScriptComplete = Payloads['SCRIPT_COMPLETE']
export type ScriptAck = Payloads['SCRIPT_ACK']
export type AgentHello = Payloads['AGENT_HELLO']
export type TerminalOpen = Payloads['TERMINAL_OPEN']
export type TerminalOutput = Payloads['TERMINAL_OUTPUT']
export type TerminalClosed = Payloads['TERMINAL_CLOSED']

/** `timestamp` is never trusted. */
export type Message<T extends MessageType = MessageType> = {
  [K in T]: { type: K; id: string; timestamp: string; payload: Payloads[K] }
}[T]

export const agentSends = [
  'SCRIPT_RECEIVED',
  'SCRIPT_PHASE',
  'SCRIPT_OUTPUT',
  'SCRIPT_COMPLETE',
  'AGENT_HELLO',
  'TERMINAL_OPENED',
  'TERMINAL_OUTPUT',
  'TERMINAL_CLOSED',
  'ERROR',
] as const satisfies readonly MessageType[]
export type FromAgent = Message<(typeof agentSends)[number]>

export const serverSends = [
  'EXECUTE_SCRIPT',
  'COPY_FILE',
  'FETCH_FILE',
  'SCRIPT_ACK',
  'CANCEL_SCRIPT',
  'TERMINAL_OPEN',
  'TERMINAL_INPUT',
  'TERMINAL_ACK',
  'TERMINAL_RESIZE',
  'TERMINAL_CLOSE',
  'ERROR',
] as const satisfies readonly MessageType[]
export type FromServer = Message<(typeof serverSends)[number]>
