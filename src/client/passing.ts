import { RsmError } from '../core/errors.ts'

/** Milliseconds for which a transfer that gets no further is tried again, as events are followed, and between two tries. */
export const patience = 300_000
export const pause = 1_000

/** Whether the same may be tried again: the bytes may have come, in part or in full. */
export const isPassing = (error: unknown): error is RsmError =>
  error instanceof RsmError && ['unreachable', 'unavailable', 'conflict', 'too_many'].includes(error.code)
