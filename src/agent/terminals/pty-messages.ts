/** What the agent and the process that holds its PTYs say to each other; `id` is the terminal's. */

/** Where that process finds its socket to the agent. */
export const agentDescriptor = 3

export interface PtyRequest {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly cols: number
  readonly rows: number
  /** Who owns the terminal's device file, as some programs open it by its name. */
  readonly uid: number
}

export type ToPtys = { readonly id: string } & (
  | { readonly to: 'open'; readonly request: PtyRequest }
  | { readonly to: 'write'; readonly bytes: Uint8Array }
  | { readonly to: 'resize'; readonly cols: number; readonly rows: number }
  /** So many bytes of output are wanted no more: as many may follow. */
  | { readonly to: 'credit'; readonly count: number }
  | { readonly to: 'hangUp' }
)

export type FromPtys = { readonly id: string } & (
  | { readonly is: 'opened'; readonly pid: number }
  | { readonly is: 'refused'; readonly reason: string }
  | { readonly is: 'output'; readonly bytes: Uint8Array }
  /** So many bytes of input found no place: the program has not read for too long. */
  | { readonly is: 'dropped'; readonly count: number }
  /** After all output; `signal` by its number, 0 for none. */
  | { readonly is: 'exited'; readonly exitCode: number; readonly signal: number }
)
