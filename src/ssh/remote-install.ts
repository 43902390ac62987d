const noSudo = 'rsm: there is no sudo on this host: log in as root, with --ssh-user root'

/** How the installer becomes root: not at all, by a sudo that asks nothing, or by one that reads a password from stdin. */
export type Sudo = 'none' | 'silent' | 'password'

export interface Remote {
  readonly sudo: Sudo
  /** Begins each line that the installer says to us: logins may print lines of their own. Hex digits. */
  readonly marker: string
  /** Bytes of the script, which comes on stdin. */
  readonly scriptSize: number
  /** What stands behind the script's own options, each as a shell takes it for one word: `rsm agent install - …`. */
  readonly words: readonly string[]
}

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
export interface ReportedFailure {
  /** From 1 to 255. */
  readonly exit: number
  readonly message: string
  readonly hint: string | null
}

/**
 * The command for the login shell of a host, whichever that is: single quotes with neither quotes, backslashes nor line breaks in
 * them are read alike by sh, fish and csh. Secrets and the script come on stdin, behind a line with the marker; what stands before it
 * is a password that sudo did not ask for.
 */
export function remoteLine({ sudo, marker, scriptSize, words }: Remote): string {
  const program = `echo ${marker} shell; while read -r l && [ "$l" != ${marker} ]; do :; done; eval "$(head -c ${scriptSize})"`
  const installer = `sh -c ${quoted(program)} install.sh --over-ssh ${marker} ${words.join(' ')}`
  if (sudo === 'none') return `exec ${installer}`
  const become = sudo === 'silent' ? 'sudo -n' : 'sudo -S -p ""'
  const launch =
    '[ "$(id -u)" = 0 ] && exec "$@"; ' +
    `command -v sudo >/dev/null || { echo "${noSudo}" >&2; exit 1; }; ` +
    // Its own words are read by us.
    `exec env LC_ALL=C ${become} "$@"`
  return `exec sh -c ${quoted(launch)} rsm ${installer}`
}

const quoted = (text: string) => `'${text}'`

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

function changesOf(reported: unknown): string[] {
  if (!Array.isArray(reported)) return []
  const changes = reported as readonly ({ what?: unknown; state?: unknown } | null)[]
  return changes.flatMap((change) =>
    typeof change?.what === 'string' && change.state !== 'done' ? [change.what] : [],
  )
}

/** Null where the line is none. A host can say anything: the texts are as it has said them. */
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
