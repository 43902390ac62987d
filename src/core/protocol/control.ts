import type { ClockDoubt } from '../clock-doubt.ts'

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

/**
 * What commands on the server's own machine ask of it, over the Unix socket in its data directory (contract §11): its
 * file rights are the permission. Each is a POST to `/NAME`, whose body is the input and whose answer is the envelope of
 * the REST API.
 */
export interface ControlCalls {
  'confirm-clock': { input: Record<string, never>; answer: ClockConfirmed }
  'confirm-restore': { input: { cancelPending: boolean }; answer: RestoreConfirmed }
  compact: { input: Record<string, never>; answer: Compacted }
}
export type ControlName = keyof ControlCalls

/** What is answered with bytes. What breaks off says why in the trailer `controlTrailer`, percent-encoded. */
export interface ControlStreams {
  /** A passphrase seals the keys into it. */
  backup: { input: { withOutput: boolean; passphrase?: string } }
}
export type ControlStreamName = keyof ControlStreams
export const controlTrailer = 'rsm-broke-off'
