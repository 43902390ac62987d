import { largestScreen } from '../../core/protocol/bounds.ts'

/** For a recording without a size that a screen can have. */
const fallback = { cols: 80, rows: 24 }

/** The size that a recording tells, which may be anyone's file: brought to one that a screen can have. */
export function recordingSize(cols: unknown, rows: unknown): { cols: number; rows: number } {
  const isSize = (count: unknown): count is number => Number.isInteger(count) && Number(count) >= 1
  if (!isSize(cols) || !isSize(rows)) return fallback
  return { cols: Math.min(cols, largestScreen), rows: Math.min(rows, largestScreen) }
}
