const noSudo = 'rsm: there is no sudo on this host: log in as root, with --ssh-user root'

/** How to become root: not at all, by sudo without a password, or by sudo with one on stdin. */
export type Sudo = 'none' | 'silent' | 'password'

export interface Remote {
  readonly sudo: Sudo
  /** Hex prefix of the installer's lines for us, because login shells may print lines too. */
  readonly marker: string
  /** Bytes of the script, which is sent on stdin. */
  readonly scriptSize: number
  /** Arguments after the script's own options, each quoted for a shell: `rsm agent install - …`. */
  readonly words: readonly string[]
}

export interface Joined {
  readonly hostId: number
  readonly hostname: string
  readonly agentId: string
}

export interface Installed {
  readonly joined: Joined
  /** Changes in the host's own words. */
  readonly changes: readonly string[]
}

/** Error of a `rsm … --json` on a host. */
export interface ReportedFailure {
  /** 1 to 255. */
  readonly exit: number
  readonly message: string
  readonly hint: string | null
}

/**
 * Command for any login shell of a host. sh, fish and csh read single quotes alike if these contain no
 * quotes, backslashes or line breaks. Secrets and the script are sent on stdin, after a line with the marker;
 * text before it is a password that sudo did not read.
 */
export function remoteLine({ sudo, marker, scriptSize, words }: Remote): string {
  const program = `echo ${marker} shell; while read -r l && [ "$l" != ${marker} ]; do :; done; eval "$(head -c ${scriptSize})"`
  const installer = `sh -c ${quoted(program)} install.sh --over-ssh ${marker} ${words.join(' ')}`
  if (sudo === 'none') return `exec ${installer}`
  const become = sudo === 'silent' ? 'sudo -n' : 'sudo -S -p ""'
  const launch =
    '[ "$(id -u)" = 0 ] && exec "$@"; ' +
    `command -v sudo >/dev/null || { echo "${noSudo}" >&2; exit 1; }; ` +
    // Fixed locale, because we parse sudo's messages.
    `exec env LC_ALL=C ${become} "$@"`
  return `exec sh -c ${quoted(launch)} rsm ${installer}`
}

const quoted = (text: string) => `'${text}'`

/** Null without an agent. The texts are unchecked: a host can send anything. */
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

function changesOf(reported: unknown): string[] {
  if (!Array.isArray(reported)) return []
  const changes = reported as readonly ({ what?: unknown; state?: unknown } | null)[]
  return changes.flatMap((change) =>
    typeof change?.what === 'string' && change.state !== 'done' ? [change.what] : [],
  )
}

/** Null if the line is not an error. The texts are unchecked: a host can send anything. */
export function readFailure(line: string): ReportedFailure | null {
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
