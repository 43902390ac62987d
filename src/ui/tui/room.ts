import { RsmError } from '../../core/errors.ts'
import type { Frame, Key, Mouse, Size } from './screen/screen.ts'

/** What was ordered just before leaving is given so long to reach the server, in milliseconds. */
export const orderTime = 2_000

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** With what to do. */
export const told = (error: unknown): string =>
  error instanceof RsmError && error.hint !== undefined ? `${error.message}: ${error.hint}` : messageOf(error)

/** What a room shows, and the keys that it takes. */
export interface View {
  readonly isTyping: boolean
  readonly isCopying: boolean
  /** Whether there is something for keys to act on. */
  readonly isReady: boolean
  key(key: Key): void
  mouse(mouse: Mouse): void
  frame(size: Size, now: number): Frame
}

/** What is on the screen, with what keeps it up to date until it is closed. */
export interface Room {
  readonly view: View
  /** Settles when it is closed; rejects with what can't be mended. */
  readonly done: Promise<void>
  /** A running task, for what is said when everything is left. */
  readonly runningTask: string | null
  /** Whether time alone changes what it shows. */
  readonly isTicking: boolean
  close(): void
}

/** What a room asks of the whole. */
export interface House {
  /** There is something new to show. */
  changed(): void
  /** With this host chosen; null: all of them. */
  openTask(taskId: string, hostId?: number | null): void
  openFleet(): void
  /** What the doctor says of the fleet, in lines of so many columns. */
  examine(columns: number, signal: AbortSignal): Promise<string>
  terminal(hostId: number, say: (text: string, isBad?: boolean) => void): void
}
