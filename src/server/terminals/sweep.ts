import { closeCodes } from '../../core/protocol/close-codes.ts'
import { reattachWindow } from '../../core/terminals/terminal.ts'
import { type Clock, repeat } from '../../disk/clock.ts'
import { isLive, noteUse } from '../access/credentials.ts'
import type { Store } from '../storage/ports/store.ts'
import { kept } from './adopt.ts'
import type { TerminalsState } from './state.ts'
import type { LiveTerminal } from './terminal.ts'
import { ended } from './terminal-end.ts'

const sweepInterval = 500

/** Ends terminals that timed out or lost their token, and retries failed writes, until stopped. */
export function startSweep(state: TerminalsState, idleLimit: number): { stop(): Promise<void> } {
  const { store, hints, clock, log, terminals, handedOver, openings, saving } = state
  const tokens = createTokenWatch(store, clock)

  async function check(terminal: LiveTerminal, now: number): Promise<void> {
    if (terminal.end) return terminal.forget(now)
    for (const { tokenId } of terminal.watchers.callers)
      if (!(await tokens.lives(tokenId))) terminal.watchers.dismiss((caller) => caller.tokenId === tokenId)
    const end = terminal.overdue(now, idleLimit)
    if (end) (await kept(state, terminal.record.id))?.finish(end)
    else if (!(await tokens.isAuthorized(terminal))) endForToken(terminal)
  }

  async function sweep(): Promise<void> {
    const now = clock.monotonic()
    for (const terminal of terminals.values())
      if (!openings.has(terminal.record.id)) await check(terminal, now)
    for (const [id, since] of handedOver) if (now - since > reattachWindow) handedOver.delete(id)
    if (store.readOnlyReason === null) await saving.sweep()
    if (store.readOnlyReason === null)
      for (const id of state.unremoved) {
        await store.transact((tx) => tx.remove('terminals', id))
        state.unremoved.delete(id)
      }
  }
  const sweeping = repeat(sweepInterval, sweep, (error) =>
    log.error({ err: error }, 'terminals: sweep failed'),
  )

  const endForToken = (terminal: LiveTerminal) =>
    terminal.finish(ended('its login has ended'), closeCodes.revoked)
  const unsubscribe = [
    hints.subscribe('tokenEnded', null, ({ id: tokenId }) => {
      for (const terminal of terminals.values()) {
        terminal.watchers.dismiss((caller) => caller.tokenId === tokenId)
        if (terminal.record.tokenId === tokenId) endForToken(terminal)
      }
    }),
    hints.subscribe('agentRevoked', null, ({ id: agentId }) => {
      for (const terminal of terminals.values())
        if (terminal.record.agentId === agentId)
          terminal.finish(ended("the token of the host's agent was revoked"), closeCodes.revoked)
    }),
  ]

  return {
    async stop() {
      for (const end of unsubscribe) end()
      await sweeping.stop()
    },
  }
}

/** Watches the tokens of terminals, and marks them as used while input arrives. */
interface TokenWatch {
  isAuthorized(terminal: LiveTerminal): Promise<boolean>
  lives(tokenId: number): Promise<boolean>
}

function createTokenWatch(store: Store, clock: Clock): TokenWatch {
  /** The last input already noted as use of the token; monotonic milliseconds. */
  const noted = new WeakMap<LiveTerminal, number>()
  async function lives(tokenId: number): Promise<boolean> {
    const token = await store.get('tokens', tokenId)
    const owner = token && (await store.get('users', token.userId))
    return token !== undefined && owner?.enabled === true && isLive(token, clock.now())
  }
  return {
    lives,
    async isAuthorized(terminal) {
      const { tokenId } = terminal.record
      if (!(await lives(tokenId))) return false
      // Input counts as use of the token; output does not.
      if (terminal.lastInput > (noted.get(terminal) ?? 0)) {
        noted.set(terminal, terminal.lastInput)
        await noteUse(store, tokenId, clock.now())
      }
      return true
    },
  }
}
