/** A flag as oclif.manifest.json tells it. */
export interface Flag {
  readonly name: string
  readonly type: 'option' | 'boolean'
  readonly char?: string
  readonly description?: string
  readonly helpGroup?: string
  readonly hidden?: boolean
  readonly multiple?: boolean
  /** What divides several values in one word. */
  readonly delimiter?: string
  readonly options?: readonly string[]
  readonly aliases?: readonly string[]
  readonly charAliases?: readonly string[]
  readonly exclusive?: readonly string[]
}

export interface Arg {
  readonly name: string
  readonly hidden?: boolean
  /** The last of a command: there may be more of it. */
  readonly multiple?: boolean
  readonly options?: readonly string[]
}

export interface Command {
  readonly id: string
  readonly summary?: string
  readonly hidden?: boolean
  /** False where the options end at the first other word. */
  readonly strict?: boolean
  readonly flags: Readonly<Record<string, Flag>>
  readonly args: Readonly<Record<string, Arg>>
}

/** As much of oclif.manifest.json as a completion reads. */
export interface Manifest {
  readonly commands: Readonly<Record<string, Command>>
}
