import { closeCodes } from '../../core/protocol/close-codes.ts'
import { reattachWindow } from '../../core/protocol/terminal-messages.ts'
import { repeat } from '../../disk/repeat.ts'
import { kept } from './adopt.ts'
import type { TerminalsState } from './state.ts'
import type { LiveTerminal } from './terminal.ts'
import { ended } from './terminal-end.ts'
import { createTokenWatch } from './token-watch.ts'

const sweepInterval = 500

/** Ends terminals whose time or token is over, and writes down what the store had refused, until it is stopped. */
export function startSweep(state: TerminalsState, idleLimit: number): { stop(): Promise<void> } {
  const { store, hints, clock, log, terminals, letGo, openings, saving } = state
  const tokens = createTokenWatch(store, clock)

  async function look(terminal: LiveTerminal, now: number): Promise<void> {
    if (terminal.end) return terminal.forget(now)
    for (const { tokenId } of terminal.watchers.callers)
      if (!(await tokens.lives(tokenId))) terminal.watchers.dismiss((caller) => caller.tokenId === tokenId)
    const end = terminal.overdue(now, idleLimit)
    if (end) (await kept(state, terminal.record.id))?.finish(end)
    else if (!(await tokens.holds(terminal))) endForToken(terminal)
  }

  async function sweep(): Promise<void> {
    const now = clock.monotonic()
    for (const terminal of terminals.values())
      if (!openings.has(terminal.record.id)) await look(terminal, now)
    for (const [id, since] of letGo) if (now - since > reattachWindow) letGo.delete(id)
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
    terminal.finish(ended('the login that it hangs on has ended'), closeCodes.revoked)
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
