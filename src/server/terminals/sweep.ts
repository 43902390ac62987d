import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import type { TerminalsState } from './state.ts'
import { createTokenWatch } from './token-watch.ts'

const sweepInterval = 500

/** Ends sessions whose time or token is over, and writes down what the store had refused, until it is stopped. */
export function startSweep(state: TerminalsState, idleLimit: number): { stop(): Promise<void> } {
  const { store, hints, clock, log, sessions, openings, saving } = state
  const tokens = createTokenWatch(store, clock)

  async function look(session: TerminalSession, now: number): Promise<void> {
    if (session.end) return session.forget(now)
    for (const { tokenId } of session.watchers.callers)
      if (!(await tokens.lives(tokenId))) session.watchers.dismiss((caller) => caller.tokenId === tokenId)
    const end = session.overdue(now, idleLimit)
    if (end) session.finish(end)
    else if (!(await tokens.holds(session))) endForToken(session)
  }

  async function sweep(): Promise<void> {
    const now = clock.monotonic()
    for (const session of sessions.values()) if (!openings.has(session.record.id)) await look(session, now)
    if (store.readOnlyReason === null) await saving.sweep()
    if (store.readOnlyReason === null)
      for (const id of state.unremoved) {
        await store.transact((tx) => tx.remove('terminals', id))
        state.unremoved.delete(id)
      }
  }
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch((error: unknown) => log.error({ err: error }, 'terminals: sweep failed'))
      .finally(() => {
        sweeping = null
      })
  }, sweepInterval)
  timer.unref()

  const endForToken = (session: TerminalSession) =>
    session.finish(ended('the login that it hangs on has ended'), closeCodes.revoked)
  const unsubscribe = [
    hints.subscribe('tokenEnded', null, ({ id: tokenId }) => {
      for (const session of sessions.values()) {
        session.watchers.dismiss((caller) => caller.tokenId === tokenId)
        if (session.record.tokenId === tokenId) endForToken(session)
      }
    }),
    hints.subscribe('agentRevoked', null, ({ id: agentId }) => {
      for (const session of sessions.values())
        if (session.record.agentId === agentId)
          session.finish(ended("the token of the host's agent was revoked"), closeCodes.revoked)
    }),
  ]

  return {
    async stop() {
      clearInterval(timer)
      for (const end of unsubscribe) end()
      await sweeping
    },
  }
}
