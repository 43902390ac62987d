import type { TerminalNotice } from '../../core/protocol/terminal-messages.ts'

/** What the user has been told about watchers: every watcher is announced, however often the connection is cut. */
export class WatcherNotices {
  /** The names, or null where a notice has changed them since. */
  #known: string | null = ''

  /** A change was told as it happened. */
  noticed(kind: TerminalNotice['kind']): void {
    if (kind === 'watched' || kind === 'unwatched') this.#known = null
  }

  /** How it stands at an attachment, as a sentence; null where that is known already. */
  attached(watchers: readonly string[]): string | null {
    const names = [...watchers].sort().join(', ')
    if (names === this.#known) return null
    this.#known = names
    if (names === '') return 'no one is watching any more'
    return `${names} ${watchers.length === 1 ? 'reads' : 'read'} along`
  }
}
