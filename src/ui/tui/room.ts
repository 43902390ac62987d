import type { Frame, Key, Mouse, Size } from './screen/screen.ts'

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
  terminal(hostId: number, say: (text: string, isBad?: boolean) => void): void
}
