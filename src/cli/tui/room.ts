import { RsmError } from '../../core/errors.ts'
import type { Frame, Key, Mouse, Size } from './screen/screen.ts'

/** Milliseconds that a request made just before leaving may take. */
export const orderTime = 2_000

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const shortMessage = (error: unknown): string =>
  error instanceof RsmError && error.hint !== undefined ? `${error.message}: ${error.hint}` : messageOf(error)

export interface View {
  readonly isTyping: boolean
  readonly isCopying: boolean
  /** Whether keys have something to act on. */
  readonly isReady: boolean
  key(key: Key): void
  mouse(mouse: Mouse): void
  frame(size: Size, now: number): Frame
}

/** A page on the screen, kept up to date until it is closed. */
export interface Room {
  readonly view: View
  /** Settles when the room is closed; rejects with a permanent error. */
  readonly done: Promise<void>
  /** A running task, reported on exit. */
  readonly runningTask: string | null
  /** Whether the view changes with time alone. */
  readonly isTicking: boolean
  close(): void
}

export interface House {
  changed(): void
  /** Opens a task with this host chosen; null for all hosts. */
  openTask(taskId: string, hostId?: number | null): void
  openFleet(): void
  /** Findings about this host, or about the fleet for null, in lines of at most `columns`. */
  examine(columns: number, hostId: number | null, signal: AbortSignal): Promise<string>
  terminal(hostId: number, say: (text: string, isBad?: boolean) => void): void
}
