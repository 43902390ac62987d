/** How the installer becomes root: not at all, by a sudo that asks nothing, or by one that reads a password from stdin. */
export type Sudo = 'none' | 'silent' | 'password'

export interface Remote {
  readonly sudo: Sudo
  /** Begins each line that the installer says to us: logins may print lines of their own. Hex digits. */
  readonly mark: string
  /** Bytes of the script, which comes on stdin. */
  readonly scriptSize: number
  /** What stands behind the script's own options, each as a shell takes it for one word: `rsm agent install - …`. */
  readonly words: readonly string[]
}

const quoted = (text: string) => `'${text}'`

const noSudo = 'rsm: there is no sudo on this host: log in as root, with --ssh-user root'

/**
 * The command for the login shell of a host, whichever that is: single quotes with neither quotes, backslashes nor line breaks in
 * them are read alike by sh, fish and csh. Secrets and the script come on stdin, behind a line with the mark; what stands before it
 * is a password that sudo did not ask for.
 */
export function remoteLine({ sudo, mark, scriptSize, words }: Remote): string {
  const program = `echo ${mark} shell; while read -r l && [ "$l" != ${mark} ]; do :; done; eval "$(head -c ${scriptSize})"`
  const installer = `sh -c ${quoted(program)} install.sh --over-ssh ${mark} ${words.join(' ')}`
  if (sudo === 'none') return `exec ${installer}`
  const become = sudo === 'silent' ? 'sudo -n' : 'sudo -S -p ""'
  const launch =
    '[ "$(id -u)" = 0 ] && exec "$@"; ' +
    `command -v sudo >/dev/null || { echo "${noSudo}" >&2; exit 1; }; ` +
    // Its own words are read by us.
    `exec env LC_ALL=C ${become} "$@"`
  return `exec sh -c ${quoted(launch)} rsm ${installer}`
}
