import type { ClockDoubt } from '../clock/agreed-time.ts'
import type { Role } from '../permissions.ts'
import type { Server, ServerStatus } from './http/server.ts'

/** What `rsm server confirm-restore` confirmed. */
export interface RestoreConfirmed {
  /** When the restore was noticed, and by what. */
  noticedAt: string
  reason: string
  /** Hosts of tasks that were held: they start now, or were cancelled. */
  executions: number
  tasks: number
  cancelled: boolean
}

/** What `rsm server confirm-clock` confirmed. */
export interface ClockConfirmed {
  /** What the server's clock shows. */
  serverTime: string
  /** What it was doubted for; null where it was not. */
  doubt: ClockDoubt | null
}

/** Bytes of the store on disk, before and after it was written anew. */
export interface Compacted {
  before: number
  after: number
}

/** What is past its time or too much: with `removed` it is gone. */
export interface OldData {
  /** Days; 0 = for good. */
  taskRetention: number
  recordingRetention: number
  /** 0 = any. */
  maxOutputBytes: number
  /** Tasks past their days, tasks past the size of output, and those that stay. */
  byAge: { tasks: number; bytes: number }
  bySize: { tasks: number; bytes: number }
  kept: { tasks: number; bytes: number }
  /** Terminal sessions past their days, and the bytes of their recordings. */
  terminals: { sessions: number; bytes: number }
  removed: boolean
}

/** Whose password `rsm server reset-password` has set, and what has ended with the old one. */
export interface PasswordReset {
  username: string
  role: Role
  enabled: boolean
  sessions: number
  /** Personal access tokens. */
  tokens: number
}

/** How a server is that runs, as the REST API says it, and what concerns its machine only. */
export interface ProcessStatus extends ServerStatus {
  pid: number
  /** As GET /api/ready says it; absent from servers that do not tell it here. */
  ready?: boolean
  /** Whether the start of this process made the first user; null until it takes requests. Older servers leave it out. */
  madeFirstUser?: boolean | null
  logLevel: LogLevel
  /** Why writes are refused, by the store and by the audit log; null where they are taken. */
  readOnly: string | null
  auditRefused: string | null
  /** Where PostgreSQL is; null where the data directory has it all. Older servers leave it out, and the two after it. */
  storeAddress?: string | null
  /** Why the store can not be reached; null where it can. */
  storeFault?: string | null
  /** All of the store; none while it can not be reached. */
  servers?: Server[]
  /** Null while the store can not be reached; so are the two after it. */
  hosts: number | null
  runningTasks: number | null
  /** Terminal sessions that are open. */
  terminals: number | null
}

/** What `rsm server upgrade` does to the server's executable. */
export interface UpgradeNote {
  from: string
  to: string
  /** Of the new executable. */
  sha256: string
  /** Why the former one is back; null before the change. */
  reverted: string | null
}

export const logLevels = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const
export type LogLevel = (typeof logLevels)[number]

/** An executable that the server hands out (contract §10). */
export interface Release {
  /** As `/dl` has it: `rsm-linux-x64`, or `rsm-linux-x64.xz`. */
  name: string
  /** Bytes. */
  size: number
  sha256: string
  /** Null for the server's own executable. */
  addedAt: string | null
  /** Of a signed one: it was added with its `.sig`, and hosts may be upgraded to it. */
  version: string | null
  /** UNCHECKED: this server is a build without a release key; agents check it all the same. */
  signature: 'VALID' | 'UNCHECKED' | null
}

/**
 * What commands on the server's own machine ask of it, over the Unix socket in its data directory (contract §11): its
 * file rights are the permission. Each is a POST to `/NAME`, whose body is the input and whose answer is the envelope of
 * the REST API.
 */
export interface ControlCalls {
  'confirm-clock': { input: Record<string, never>; answer: ClockConfirmed }
  'confirm-restore': { input: { cancelPending: boolean }; answer: RestoreConfirmed }
  retention: { input: { dryRun: boolean }; answer: OldData }
  'reset-password': { input: { username: string; password: string }; answer: PasswordReset }
  status: { input: Record<string, never>; answer: ProcessStatus }
  'log-level': { input: { level: LogLevel }; answer: { level: LogLevel; before: LogLevel } }
  compact: { input: Record<string, never>; answer: Compacted }
  /** `incoming` is the name of a file that lies in `releases/` of the data directory already; `signature` the text of its `.sig`. */
  'releases-add': { input: { incoming: string; name: string; signature?: string }; answer: Release }
  'releases-list': { input: Record<string, never>; answer: { releases: Release[] } }
  /** Only recorded: the command does the work, and outlives the server. */
  'upgrade-note': { input: UpgradeNote; answer: Record<string, never> }
  'releases-remove': { input: { name: string }; answer: Release }
}
export type ControlName = keyof ControlCalls

/** What is answered with bytes. What breaks off says why in the trailer `controlTrailer`, percent-encoded. */
export interface ControlStreams {
  /** A passphrase seals the keys into it. */
  backup: { input: { withOutput: boolean; passphrase?: string } }
}
export type ControlStreamName = keyof ControlStreams
export const controlTrailer = 'rsm-broke-off'
