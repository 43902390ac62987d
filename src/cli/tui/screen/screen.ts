/** Style of text. `fg` is omitted without colours, so it must not carry meaning alone. */
export interface Style {
  readonly fg?: 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan'
  readonly bold?: boolean
  readonly dim?: boolean
  readonly inverse?: boolean
  readonly underline?: boolean
}

/** Text of one line, without control sequences. */
export interface Span {
  readonly text: string
  readonly style?: Style | undefined
}

/** Spans at an absolute column, independent of the width of those before. */
export interface Segment {
  readonly at: number
  readonly spans: readonly Span[]
}

export type Row = readonly Segment[]

export interface Frame {
  readonly rows: readonly Row[]
  /** False leaves the mouse to the terminal, for selecting text. */
  readonly mouse: boolean
  readonly cursor?: { readonly x: number; readonly y: number } | undefined
}

export interface Size {
  readonly cols: number
  readonly rows: number
}

/** `name` is the character or one of blessed's names: `up`, `pagedown`, `enter`, `escape`, `C-c`. */
export interface Key {
  readonly name: string
  /** Typed text; null for keys that type nothing. */
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
  /** The size changed or the screen was taken again: the next frame is drawn completely. */
  resized(): void
  gone(): void
}

/** The whole terminal: taken by `enter`, released by `leave` or when the process ends. */
export interface Screen {
  readonly size: Size
  /** Whether the terminal has taken all previous frames. */
  readonly isReady: boolean
  draw(frame: Frame): void
  enter(): void
  leave(): void
  /** Stops this process, as Ctrl-Z does; returns when it continues. */
  suspend(): void
  redraw(): void
  close(): void
}
