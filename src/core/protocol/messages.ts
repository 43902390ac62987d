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
/** Printable: people are shown it as it is. */
const signal = text({ pattern: /^[ -~]{0,32}$/ })
const sentence = text({ maxLength: longestSentence })
/** Characters of the id of a frame, where an ERROR names it. */
export const longestId = 128
/** An X25519 key, or a MAC of SHA-256: 32 bytes, base64url. */
const bytes32 = text({ pattern: /^[A-Za-z0-9_-]{43}$/ })
const size = number({ integer: true, minimum: 1, maximum: largestScreen })
const limit = number({ integer: true, minimum: 1, maximum: most })

/** How far an agent's journal goes: the number of lines that were ever written to it. */
const journal = object({ sequence })
/**
 * How far a server's store has come: a start of the server, and the number of the last commit that is on disk. A store that
 * does not know it has been restored from a backup (contract §11).
 */
const mark = object({
  run: id,
  sequence,
  /** HMAC-SHA256 over the agent, `run` and `sequence`, base64url: shows that this server gave the mark to this agent. */
  mac: optional(bytes32),
})
export type RunMark = Infer<typeof mark>

/** Fields that a signature adds; the agent refuses a message that lacks one. */
const signed = {
  /** ISO 8601 by the server's clock; judged when the message is first received. */
  expiry: optional(text()),
  /** Ed25519 over type, agentId and every other field of the payload; base64. */
  signature: optional(text()),
  keyId: optional(text()),
  /** Of the HELLO of the link that it is sent over, where that has one: over any other link it is a replay. */
  linkId: optional(text()),
}

/** What shows that typed input comes from the server that signed the TERMINAL_OPEN of this link (contract §7). */
const inputMac = {
  /** From 0 after each TERMINAL_OPEN, one up with each input and each change of size. */
  counter: optional(sequence),
  /** HMAC-SHA256 of `macText` (core/terminals/terminal.ts), base64url. */
  mac: optional(bytes32),
}

/** Fields of COPY_FILE and FETCH_FILE, with the meaning that they have in EXECUTE_SCRIPT. */
const fileOrder = {
  taskId: id,
  timeout: number({ minimum: 0 }),
  runAs: optional(text()),
  maxOutputBytes: bytes,
  mark: optional(mark),
  ...signed,
}

/** How much of which row of input was taken; '' before any. */
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
/** One of a set to which later versions add. */
const name = text({ pattern: /^[!-~]{1,64}$/ })

/** The payload of every message of the agent's WebSocket, by type (contract §6). Fields that are not named are ignored. */
export const payloads = {
  /** `timeout` in seconds, 0 = none. A base-protocol agent ignores the fields after `workDir`. */
  EXECUTE_SCRIPT: object({
    taskId: id,
    script: text(),
    timeout: number({ minimum: 0 }),
    params: map(text()),
    workDir: optional(text()),
    scriptType,
    /** Name of the script's file; `script` if absent. */
    scriptName: optional(text({ pattern: scriptFileName })),
    runAs: optional(text()),
    /** Sent only to an agent whose HELLO says that it enforces each of them. */
    limits: optional(
      object({ memoryMB: optional(limit), processes: optional(limit), cpuPercent: optional(limit) }),
    ),
    maxOutputBytes: bytes,
    /** What the script reads instead of /dev/null; only to an agent whose HELLO says `files`. */
    stdin: optional(file),
    /** In place of the script, which says to an agent that does not know this that it is too old. */
    upgrade: optional(upgrade),
    /** These two go only to an agent whose HELLO says that it knows them: any other would run the script without. */
    verify: optional(verify),
    rollback: optional(rollback),
    /** Goes to agents of ours; servers before this one leave it out, and take no SCRIPT_RECEIVED. */
    mark: optional(mark),
    ...signed,
  }),
  /**
   * Writes a file, or a tree, on the host, as `runAs` where given. An execution as that of a script: received, cancelled and
   * completed by the same messages. Only to an agent whose HELLO says `files`.
   */
  COPY_FILE: object({ ...fileOrder, copy }),
  /** Sends a file, or a tree, of the host to the server; all else as of COPY_FILE. */
  FETCH_FILE: object({ ...fileOrder, fetch }),
  /** The execution is in the agent's journal: from here on it is never sent again. */
  SCRIPT_RECEIVED: object({ taskId: id, journal }),
  /** An execution with gates has got there; of one that has none it is never sent. */
  SCRIPT_PHASE: object({ taskId: id, phase }),
  /** `sequence` counts from 0 over both streams of one execution, and over all of its phases; absent, `phase` is SCRIPT. */
  SCRIPT_OUTPUT: object({
    taskId: id,
    stream: oneOf('stdout', 'stderr'),
    data: text(),
    sequence,
    phase: optional(phase),
  }),
  /**
   * The end of an execution; `duration` in milliseconds. A base-protocol agent sends the first five fields.
   * `lastSequence` is -1 when there was no output. `status` is one of the final ones that a host can know.
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
    /** Bytes that the script wrote, before any cut. */
    stdoutBytes: optional(bytes),
    stderrBytes: optional(bytes),
    truncated: optional(truth),
    /** Of a copy: whether it changed anything, or would have (`check`). Absent where that is not known, and of all else. */
    changed: optional(truth),
    /**
     * What held its tree together; null where it was never started. A level that this server does not know is a newer
     * agent's, and no reason to lose an end.
     */
    containment: optional(nullable(text({ maxLength: 64 }))),
    /** What was ended and lives on. Absent beside `containment` where that is not known. */
    survivors: optional(
      list(
        object({
          pid: number({ integer: true, minimum: 1, maximum: most }),
          command: text({ maxLength: 64 }),
        }),
        20,
      ),
    ),
    /** Where these have run; `exitCode` is null where it is not known. */
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
   * All output up to `sequence` is stored; with `complete`, the end is too and the agent lets the task go. With `noStart`, an
   * agent whose files another one may have starts nothing more of it (P48).
   */
  SCRIPT_ACK: object({
    taskId: id,
    sequence: optional(lastSequence),
    complete: optional(oneOf(true)),
    noStart: optional(oneOf(true)),
  }),
  CANCEL_SCRIPT: object({ taskId: id }),
  /** `storeId` names the agent's journal: a new one knows nothing of what was sent to the old one. */
  AGENT_HELLO: object({
    agentVersion: text({ maxLength: 256 }),
    storeId: id,
    /** Made anew at each start of the agent's process; 0.1.0 leaves this and `journal` out. */
    instanceId: optional(id),
    journal: optional(journal),
    /** The newest that a server gave this agent. */
    mark: optional(mark),
    /** Made anew for each link; the server signs it with whatever it sends over this one. */
    linkId: optional(id),
    capabilities: object({
      maxExecutions: number({ integer: true, minimum: 1, maximum: 100_000 }),
      /** Here and below, names that this server does not know are a newer agent's, and no reason to refuse its link. */
      scriptTypes: list(name, 64),
      /** How a tree of processes is ended here. */
      containment: name,
      terminal: truth,
      /** Why it cannot open any. */
      terminalLack: optional(sentence),
      /** The user that scripts run as where a task names none; older agents leave this and what follows out. */
      runAs: optional(text({ maxLength: 256 })),
      /** Whether that user is root (uid 0). */
      runsAsRoot: optional(truth),
      sandbox: optional(name),
      /** The limits that can be enforced here. */
      limits: optional(list(text({ maxLength: 64 }), 64)),
      /** COPY_FILE, FETCH_FILE and the stdin of a script are known here. */
      files: optional(truth),
      /** Whether it runs what is to follow on a script. */
      gates: optional(truth),
    }),
    /** `state` is an `ExecutionState`, or a newer agent's; `phase` is that of an execution with gates. */
    tasks: list(object({ taskId: id, state: name, lastSequence, phase: optional(name) }), 100_000),
    /** Sessions that live here; older agents, and those without a terminal facility, leave it out. */
    terminals: optional(list(object({ sessionId: id, lastSequence }), 1000)),
  }),
  /**
   * Opens a session; sent again over a later link it takes up the one that lives: until then the agent takes nothing for
   * that session from the new link, as input is not signed and this is.
   */
  TERMINAL_OPEN: object({
    sessionId: id,
    cols: size,
    rows: size,
    runAs: optional(text()),
    /** A path, or a name found in PATH; the user's login shell where it is left out. */
    shell: optional(text()),
    /** TERM of the client; `xterm-256color` where it is left out. */
    term: optional(text()),
    /** The client shows 24-bit colours: COLORTERM is `truecolor`. */
    trueColor: optional(oneOf(true)),
    /** Run by the shell instead of an interactive one; the session ends with it. */
    command: optional(text()),
    /** The command has nothing to read: its stdin is /dev/null. */
    noStdin: optional(oneOf(true)),
    /** Of a session that is taken up: the last output that the server has, -1 for none. Absent at the first. */
    after: optional(lastSequence),
    /** The server's X25519 key, made for this message: then only input with a mark is typed. */
    inputKey: optional(bytes32),
    ...signed,
  }),
  /**
   * `inputKey`: the agent's X25519 key, where the TERMINAL_OPEN that it answers had one. `typed`: what it has taken; agents
   * that do not count leave it out.
   */
  TERMINAL_OPENED: object({ sessionId: id, inputKey: optional(bytes32), typed: optional(typed) }),
  /** `by` names a row of input without a gap, and `position` counts its characters before `data`. Both or none. */
  TERMINAL_INPUT: object({
    sessionId: id,
    data: text(),
    by: optional(id),
    position: optional(sequence),
    ...inputMac,
  }),
  /** `sequence` counts the frames of a session from 0. A base-protocol agent leaves it out. */
  TERMINAL_OUTPUT: object({ sessionId: id, data: text(), sequence: optional(sequence) }),
  /** All output up to `sequence` has gone where it was for; beyond 256 KiB without one the PTY is paused. */
  TERMINAL_ACK: object({ sessionId: id, sequence: lastSequence }),
  TERMINAL_RESIZE: object({ sessionId: id, cols: size, rows: size, ...inputMac }),
  TERMINAL_CLOSE: object({ sessionId: id }),
  /** The end of a session; `reason` is a sentence where it did not end by itself, or never began. */
  TERMINAL_CLOSED: object({
    sessionId: id,
    exitCode: nullable(number({ integer: true })),
    signal: nullable(signal),
    reason: nullable(sentence),
  }),
  /** `sessionId` where it is about a terminal session and no frame: 413 from an agent tells of input that was dropped. */
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

/** The envelope of every message; `timestamp` is never trusted. */
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
