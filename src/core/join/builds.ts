/** Machines that there are builds for, by Node's name of their architecture. */
export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** An executable of rsm that a server hands out. */
export interface Build {
  /** As `/dl` has it: `rsm-linux-x64`. */
  readonly name: string
  readonly arch: Architecture
  /** Of the executable, 64 hex digits. */
  readonly sha256: string
  /** Bytes. */
  readonly size: number
}

export const buildName = (arch: Architecture): string => `rsm-linux-${arch}`

/** Which build a file is by its name, and whether it is compressed; null where the name is none. */
export function buildOf(file: string): { arch: Architecture; isXz: boolean } | null {
  const [, word, xz] = /^rsm-linux-(\w+)(\.xz)?$/.exec(file) ?? []
  const arch = architectures.find((each) => each === word)
  return arch === undefined ? null : { arch, isXz: xz !== undefined }
}
