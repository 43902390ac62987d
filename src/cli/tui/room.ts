import { RsmError } from '../../core/errors.ts'
import type { Frame, Key, Mouse, Size } from './screen/screen.ts'

/** How long an order given just before leaving may take to reach the server, in milliseconds. */
export const orderTime = 2_000

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const shortMessage = (error: unknown): string =>
  error instanceof RsmError && error.hint !== undefined ? `${error.message}: ${error.hint}` : messageOf(error)

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

export interface House {
  changed(): void
  /** With this host chosen; null: all of them. */
  openTask(taskId: string, hostId?: number | null): void
  openFleet(): void
  /** Findings of this host, or of the fleet for null, in lines of at most `columns`. */
  examine(columns: number, hostId: number | null, signal: AbortSignal): Promise<string>
  terminal(hostId: number, say: (text: string, isBad?: boolean) => void): void
}
