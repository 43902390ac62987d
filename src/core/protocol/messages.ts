import type { LimitName } from '../task/limits.ts'
import type { Containment, SandboxMode } from './http/hosts.ts'
import type { Stream } from './http/logs.ts'
import type { ScriptType } from './http/scripts.ts'
import type { Limits, ResultStatus, Survivor } from './http/tasks.ts'

/** The subprotocol that an agent of ours offers; without it only base-protocol messages are sent (contract §6). */
export const subprotocol = 'rsm.1'

/** A larger frame closes the link with 1009. */
export const maxFrameBytes = 1024 * 1024

/** Characters of a sentence for people; a message with a longer one is malformed. */
export const longestSentence = 4096

/** Characters of a heartbeat's sentence about the agent or its link. */
export const longestReason = 256

/**
 * How far a server's store has come: a start of the server, and the number of the last commit that is on disk. A store that
 * does not know it has been restored from a backup (contract §11).
 */
export interface RunMark {
  run: string
  sequence: number
}

interface Signed {
  /** ISO 8601 by the server's clock; judged when the message is first received. */
  expiry: string
  /** Ed25519 over type, agentId and every other field of the payload; base64. */
  signature: string
  keyId: string
  /** Of the HELLO of the link that it is sent over, where that has one: over any other link it is a replay. */
  linkId?: string
}

/** `timeout` in seconds, 0 = none. A base-protocol agent ignores the fields after `workDir`. */
export interface ExecuteScript extends Signed {
  taskId: string
  script: string
  timeout: number
  params: Record<string, string>
  workDir?: string
  scriptType: ScriptType
  runAs?: string
  /** Sent only to an agent whose HELLO says that it enforces each of them. */
  limits?: Limits
  maxOutputBytes: number
  /** Goes to agents of ours; servers before this one leave it out, and take no SCRIPT_RECEIVED. */
  mark?: RunMark
}

/** How far an agent's journal goes: the number of lines that were ever written to it. */
export interface JournalMark {
  sequence: number
}

/** The execution is in the agent's journal: from here on it is never sent again. */
export interface ScriptReceived {
  taskId: string
  journal: JournalMark
}

/** `sequence` counts from 0 over both streams of one execution. */
export interface ScriptOutput {
  taskId: string
  stream: Stream
  data: string
  sequence: number
}

/**
 * The end of an execution; `duration` in milliseconds. A base-protocol agent sends the first five fields.
 * `lastSequence` is -1 when there was no output. `status` is one of the final ones that a host can know.
 */
export interface ScriptComplete {
  taskId: string
  exitCode: number
  duration: number
  startedAt: string
  completedAt: string
  status?: Extract<ResultStatus, 'SUCCESS' | 'FAILED' | 'TIMEOUT' | 'CANCELLED' | 'LOST'>
  signal?: string | null
  error?: string | null
  lastSequence?: number
  /** Bytes that the script wrote, before any cut. */
  stdoutBytes?: number
  stderrBytes?: number
  truncated?: boolean
  /** What held its tree together; null where it was never started, or a newer agent names what is not known here. */
  containment?: Containment | null
  /** What was ended and lives on, at most 20. Absent beside `containment` where that is not known. */
  survivors?: Survivor[]
}

/** All output up to `sequence` is stored; with `complete`, the end is too and the agent lets the task go. */
export interface ScriptAck {
  taskId: string
  sequence?: number
  complete?: true
}

/** QUEUED: received, not started; RUNNING; EXITED: ended, not yet acknowledged. */
export type ExecutionState = 'QUEUED' | 'RUNNING' | 'EXITED'

/** `storeId` names the agent's journal: a new one knows nothing of what was sent to the old one. */
export interface AgentHello {
  agentVersion: string
  storeId: string
  /** Made anew at each start of the agent's process; 0.1.0 leaves this and `journal` out. */
  instanceId?: string
  journal?: JournalMark
  /** The newest that a server gave this agent. */
  mark?: RunMark
  /** Made anew for each link; the server signs it with whatever it sends over this one. */
  linkId?: string
  capabilities: {
    maxExecutions: number
    scriptTypes: ScriptType[]
    /** How a tree of processes is ended here. */
    containment: Containment
    terminal: boolean
    /** The user that scripts run as where a task names none; older agents leave this and what follows out. */
    runAs?: string
    /** Whether that user is root (uid 0). */
    runsAsRoot?: boolean
    sandbox?: SandboxMode
    /** The limits that can be enforced here. */
    limits?: LimitName[]
  }
  tasks: { taskId: string; state: ExecutionState; lastSequence: number }[]
  /** Sessions that live here; older agents, and those without a terminal facility, leave it out. */
  terminals?: { sessionId: string; lastSequence: number }[]
}

/** The most columns or rows of a terminal. */
export const largestScreen = 1000

/**
 * Opens a session; sent again over a later link it takes up the one that lives: until then the agent takes nothing for
 * that session from the new link, as input is not signed and this is.
 */
export interface TerminalOpen extends Signed {
  sessionId: string
  cols: number
  rows: number
  runAs?: string
  /** A path, or a name found in PATH; the user's login shell where it is left out. */
  shell?: string
  /** TERM of the client; `xterm-256color` where it is left out. */
  term?: string
  /** Run by the shell instead of an interactive one; the session ends with it. */
  command?: string
  /** The command has nothing to read: its stdin is /dev/null. */
  noStdin?: true
  /** Of a session that is taken up: the last output that the server has, -1 for none. Absent at the first. */
  after?: number
  /** The server's X25519 key, made for this message, base64url: then only input with a mark is typed. */
  inputKey?: string
}

/** Output of a session; `sequence` counts its frames from 0. A base-protocol agent leaves it out. */
export interface TerminalOutput {
  sessionId: string
  data: string
  sequence?: number
}

/** The end of a session; `reason` is a sentence where it did not end by itself, or never began. */
export interface TerminalClosed {
  sessionId: string
  exitCode: number | null
  signal: string | null
  reason: string | null
}

/** What shows that typed input comes from the server that signed the TERMINAL_OPEN of this link (contract §7). */
export interface InputMark {
  /** From 0 after each TERMINAL_OPEN, one up with each input and each change of size. */
  readonly counter: number
  /** HMAC-SHA256 of `markedText` (core/typed-input.ts), base64url. */
  readonly mac: string
}

/** Every message of the agent's WebSocket, by type (contract §6). */
export interface Payloads {
  EXECUTE_SCRIPT: ExecuteScript
  SCRIPT_RECEIVED: ScriptReceived
  SCRIPT_OUTPUT: ScriptOutput
  SCRIPT_COMPLETE: ScriptComplete
  SCRIPT_ACK: ScriptAck
  CANCEL_SCRIPT: { taskId: string }
  AGENT_HELLO: AgentHello
  TERMINAL_OPEN: TerminalOpen
  /** `inputKey`: the agent's X25519 key, where the TERMINAL_OPEN that it answers had one. */
  TERMINAL_OPENED: { sessionId: string; inputKey?: string }
  TERMINAL_INPUT: { sessionId: string; data: string } & Partial<InputMark>
  TERMINAL_OUTPUT: TerminalOutput
  /** All output up to `sequence` has gone where it was for; beyond 256 KiB without one the PTY is paused. */
  TERMINAL_ACK: { sessionId: string; sequence: number }
  TERMINAL_RESIZE: { sessionId: string; cols: number; rows: number } & Partial<InputMark>
  TERMINAL_CLOSE: { sessionId: string }
  TERMINAL_CLOSED: TerminalClosed
  /** `sessionId` where it is about a terminal session and no frame: 413 from an agent tells of input that was dropped. */
  ERROR: { code: number; message: string; refId: string | null; sessionId?: string }
}
export type MessageType = keyof Payloads

/** The envelope of every message; `timestamp` is never trusted. */
export type Message<T extends MessageType = MessageType> = {
  [K in T]: { type: K; id: string; timestamp: string; payload: Payloads[K] }
}[T]

export type FromAgent = Message<
  | 'SCRIPT_RECEIVED'
  | 'SCRIPT_OUTPUT'
  | 'SCRIPT_COMPLETE'
  | 'AGENT_HELLO'
  | 'TERMINAL_OPENED'
  | 'TERMINAL_OUTPUT'
  | 'TERMINAL_CLOSED'
  | 'ERROR'
>
export type FromServer = Message<
  | 'EXECUTE_SCRIPT'
  | 'SCRIPT_ACK'
  | 'CANCEL_SCRIPT'
  | 'TERMINAL_OPEN'
  | 'TERMINAL_INPUT'
  | 'TERMINAL_ACK'
  | 'TERMINAL_RESIZE'
  | 'TERMINAL_CLOSE'
  | 'ERROR'
>
