import type { ScriptOutput } from '../../core/protocol/messages.ts'
import type { Live, PendingOutput } from './task-run.ts'

const counter = { stdout: 'stdoutBytes', stderr: 'stderrBytes' } as const

/** Takes in a piece of `bytes` bytes: from here on it counts, and is not taken again. */
export function take(live: Live, { sequence, stream }: ScriptOutput, bytes: number): PendingOutput {
  const pending = { sequence, before: live.lastSequence, stream, bytes }
  live.pending.add(pending)
  live.lastSequence = sequence
  live[counter[stream]] += bytes
  live.frames++
  return pending
}

/** The piece is durable. */
export function stored(live: Live, pending: PendingOutput): void {
  if (live.pending.delete(pending)) live.storedSequence = Math.max(live.storedSequence, pending.sequence)
}

/**
 * The piece could not be stored, and so none that was taken in after it (Outputs.append): they may come again. What
 * was taken in before it may still be written, and is not taken again. False when that is known already.
 */
export function refused(live: Live, pending: PendingOutput): boolean {
  if (!live.pending.has(pending)) return false
  let isRefused = false
  for (const one of live.pending) {
    isRefused ||= one === pending
    if (!isRefused) continue
    live.pending.delete(one)
    live[counter[one.stream]] -= one.bytes
    live.frames--
  }
  live.lastSequence = pending.before
  return true
}
