/** How a piece of text stands out. Without colours `fg` is left out, so nothing may be told by it alone. */
export interface Style {
  readonly fg?: 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan'
  readonly bold?: boolean
  readonly dim?: boolean
  readonly inverse?: boolean
  readonly underline?: boolean
}

/** Text of one line without control sequences. */
export interface Span {
  readonly text: string
  readonly style?: Style | undefined
}

/** Spans that begin at a column of their own, wherever a terminal believes that those before it end. */
export interface Segment {
  readonly at: number
  readonly spans: readonly Span[]
}

export type Row = readonly Segment[]

export interface Frame {
  readonly rows: readonly Row[]
  /** False leaves the mouse to the terminal, which then selects text with it. */
  readonly mouse: boolean
  readonly cursor?: { readonly x: number; readonly y: number } | undefined
}

export interface Size {
  readonly cols: number
  readonly rows: number
}

/** `name` is the character itself, or one of blessed's names: `up`, `pagedown`, `enter`, `escape`, `C-c`. */
export interface Key {
  readonly name: string
  /** What is typed by it; null of a key that types nothing. */
  readonly text: string | null
}

export interface Mouse {
  readonly action: 'press' | 'wheelup' | 'wheeldown'
  readonly x: number
  readonly y: number
}

export interface ScreenListener {
  key(key: Key): void
  mouse(mouse: Mouse): void
  /** The size has changed, or the screen was taken again: what is drawn next is drawn wholly. */
  resized(): void
  gone(): void
}

/** A whole terminal, taken by `enter` and given back by `leave`, however the process ends. */
export interface Screen {
  readonly size: Size
  /** Whether the terminal has taken what was drawn so far. */
  readonly isReady: boolean
  draw(frame: Frame): void
  enter(): void
  leave(): void
  /** Stops this process, as Ctrl-Z does; returns when it is taken up again. */
  suspend(): void
  redraw(): void
  close(): void
}
