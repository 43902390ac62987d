import type { ClockDoubt } from '../clock/agreed-time.ts'
import type { Role } from '../permissions.ts'
import type { Server, ServerStatus } from './http/server.ts'

/** Answer to `rsm server confirm-restore`. */
export interface RestoreConfirmed {
  /** When and how the restore was detected. */
  noticedAt: string
  reason: string
  /** Executions that were held: now released, or cancelled. */
  executions: number
  tasks: number
  cancelled: boolean
}

/** Answer to `rsm server confirm-clock`. */
export interface ClockConfirmed {
  serverTime: string
  /** Null if the clock was not in doubt. */
  doubt: ClockDoubt | null
}

/** Bytes of the store on disk, before and after compaction. */
export interface Compacted {
  before: number
  after: number
}

/** Data past its retention or over the size limit; deleted if `removed`. */
export interface OldData {
  /** Days; 0 = forever. */
  taskRetention: number
  recordingRetention: number
  /** 0 = unlimited. */
  maxOutputBytes: number
  /** Tasks past retention, tasks over the size limit, and the rest. */
  byAge: { tasks: number; bytes: number }
  bySize: { tasks: number; bytes: number }
  kept: { tasks: number; bytes: number }
  /** Terminal sessions past retention, and the bytes of their recordings. */
  terminals: { sessions: number; bytes: number }
  removed: boolean
}

/** User whose password was reset, and the numbers of sessions and tokens revoked. */
export interface PasswordReset {
  username: string
  role: Role
  enabled: boolean
  sessions: number
  /** Personal access tokens. */
  tokens: number
}

/** Status of a running server: that of the REST API, and details of its machine. */
export interface ProcessStatus extends ServerStatus {
  pid: number
  /** As in GET /api/ready; absent from older servers. */
  ready?: boolean
  /** Whether this process created the first user; null until it accepts requests. Absent from older servers. */
  madeFirstUser?: boolean | null
  logLevel: LogLevel
  /** Why the store and the audit log refuse writes; null if they accept them. */
  readOnly: string | null
  auditRefused: string | null
  /** Address of PostgreSQL; null without it. Older servers leave out this field and the next two. */
  storeAddress?: string | null
  /** Why the store cannot be reached; null if it can. */
  storeFault?: string | null
  /** All servers of the store; empty while it cannot be reached. */
  servers?: Server[]
  /** This and the next two are null while the store cannot be reached. */
  hosts: number | null
  runningTasks: number | null
  terminals: number | null
}

/** Replacement of the server's executable by `rsm server upgrade`. */
export interface UpgradeNote {
  from: string
  to: string
  sha256: string
  /** Why the previous one was restored; null before the replacement. */
  reverted: string | null
}

export const logLevels = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const
export type LogLevel = (typeof logLevels)[number]

/** An executable that the server hands out (contract §10). */
export interface Release {
  /** As under `/dl`: `rsm-linux-x64`, or `rsm-linux-x64.xz`. */
  name: string
  /** Bytes. */
  size: number
  sha256: string
  /** Null for the server's own executable. */
  addedAt: string | null
  /** Version of a signed release, which was added with its `.sig` and to which hosts can be upgraded. */
  version: string | null
  /** UNCHECKED: this server is a build without a release key; agents verify the signature anyway. */
  signature: 'VALID' | 'UNCHECKED' | null
}

/**
 * Calls from commands on the server's own machine, over the Unix socket in its data directory (contract §11): access
 * to the socket file is the permission. Each is a POST to `/NAME`; the body is the input, the answer has the envelope
 * of the REST API.
 */
export interface ControlCalls {
  'confirm-clock': { input: Record<string, never>; answer: ClockConfirmed }
  'confirm-restore': { input: { cancelPending: boolean }; answer: RestoreConfirmed }
  retention: { input: { dryRun: boolean }; answer: OldData }
  'reset-password': { input: { username: string; password: string }; answer: PasswordReset }
  status: { input: Record<string, never>; answer: ProcessStatus }
  'log-level': { input: { level: LogLevel }; answer: { level: LogLevel; before: LogLevel } }
  compact: { input: Record<string, never>; answer: Compacted }
  /** `incoming` names a file already in `releases/` of the data directory; `signature` is the text of its `.sig`. */
  'releases-add': { input: { incoming: string; name: string; signature?: string }; answer: Release }
  'releases-list': { input: Record<string, never>; answer: { releases: Release[] } }
  /** Recorded only: the command does the work and outlives the server. */
  'upgrade-note': { input: UpgradeNote; answer: Record<string, never> }
  'releases-remove': { input: { name: string }; answer: Release }
}
export type ControlName = keyof ControlCalls

/** Calls answered with bytes. After a cut, the trailer `controlTrailer` holds the error, percent-encoded. */
export interface ControlStreams {
  /** With a passphrase, the backup contains the keys, sealed with it. */
  backup: { input: { withOutput: boolean; passphrase?: string } }
}
export type ControlStreamName = keyof ControlStreams
export const controlTrailer = 'rsm-broke-off'
