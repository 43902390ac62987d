import type { TerminalNotice } from '../../core/terminals/terminal.ts'

/** Tracks which watchers the user knows of, so that each is announced despite reconnects. */
export class WatcherNotices {
  /** Known names; null after a notice changed them. */
  #known: string | null = ''

  /** A notice announced a change. */
  noticed(kind: TerminalNotice['kind']): void {
    if (kind === 'watched' || kind === 'unwatched') this.#known = null
  }

  /** Sentence about the watchers after attaching; null if already known. */
  attached(watchers: readonly string[]): string | null {
    const names = [...watchers].sort().join(', ')
    if (names === this.#known) return null
    this.#known = names
    if (names === '') return 'no one is watching any more'
    return `${names} ${watchers.length === 1 ? 'reads' : 'read'} along`
  }
}
