/** What a host is in rsm once its agent is linked. */
export interface Joined {
  readonly hostId: number
  readonly hostname: string
  readonly agentId: string
}

/** What `rsm agent install --json` has done on a host. */
export interface Installed {
  readonly joined: Joined
  /** What it has written, as it says it. */
  readonly changes: readonly string[]
}

/** The error of a `rsm … --json` on a host. */
export interface SaidFailure {
  /** From 1 to 255. */
  readonly exit: number
  readonly message: string
  readonly hint: string | null
}

function changesOf(said: unknown): string[] {
  if (!Array.isArray(said)) return []
  const changes = said as readonly ({ what?: unknown; state?: unknown } | null)[]
  return changes.flatMap((change) =>
    typeof change?.what === 'string' && change.state !== 'done' ? [change.what] : [],
  )
}

/** Null where it names no agent. A host can say anything: the texts are as it has said them. */
export function readInstalled(text: string): Installed | null {
  try {
    const { linked, changes } = JSON.parse(text) as {
      linked: Record<keyof Joined, unknown> | null
      changes: unknown
    }
    if (linked === null || !Number.isSafeInteger(linked.hostId)) return null
    const joined = {
      hostId: linked.hostId as number,
      hostname: String(linked.hostname),
      agentId: String(linked.agentId),
    }
    return { joined, changes: changesOf(changes) }
  } catch {
    return null
  }
}

/** Null where the line is none. A host can say anything: the texts are as it has said them. */
export function readFailure(line: string): SaidFailure | null {
  if (!line.startsWith('{"error":')) return null
  try {
    const { error } = JSON.parse(line) as { error: { exit: unknown; message: unknown; hint: unknown } }
    if (typeof error.message !== 'string') return null
    return {
      exit: Math.min(Math.max(Math.floor(Number(error.exit)) || 1, 1), 255),
      message: error.message,
      hint: typeof error.hint === 'string' ? error.hint : null,
    }
  } catch {
    return null
  }
}
