import type { Clock } from '../../disk/clock.ts'
import { isLive, noteUse } from '../access/credentials.ts'
import type { Store } from '../storage/ports/store.ts'
import type { LiveTerminal } from './terminal.ts'

/** Keeps the tokens that terminals hang on in use as long as those are used, and tells of those that have ended. */
export interface TokenWatch {
  /** Whether the terminal's token still lives. */
  holds(terminal: LiveTerminal): Promise<boolean>
  /** Whether this token still lives. */
  lives(tokenId: number): Promise<boolean>
}

export function createTokenWatch(store: Store, clock: Clock): TokenWatch {
  /** Until when it was active when its token was last noted as used; monotonic. */
  const noted = new WeakMap<LiveTerminal, number>()
  async function lives(tokenId: number): Promise<boolean> {
    const token = await store.get('tokens', tokenId)
    const owner = token && (await store.get('users', token.userId))
    return token !== undefined && owner?.enabled === true && isLive(token, clock.now())
  }
  return {
    lives,
    async holds(terminal) {
      const { tokenId } = terminal.record
      if (!(await lives(tokenId))) return false
      // What is typed counts as a request does; what only runs does not.
      if (terminal.lastInput > (noted.get(terminal) ?? 0)) {
        noted.set(terminal, terminal.lastInput)
        await noteUse(store, tokenId, clock.now())
      }
      return true
    },
  }
}
