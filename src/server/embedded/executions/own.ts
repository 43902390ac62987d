import { asBegun, asOwnEnd } from '../../executions/transitions.ts'
import type { Executions } from '../../seams/executions.ts'
import type { Steps } from './steps.ts'

/** What the server itself does on hosts, over SSH: no link takes it. */
export function createOwn(steps: Steps): Pick<Executions, 'begin' | 'end'> {
  return {
    /** The record is written before the host is spoken to: what a crash cuts is LOST, and not begun again. */
    begin: (by, ids) => steps.changeOwned(by, 'sent', ids, steps.unlessHeld(asBegun(steps.now()))),
    end: (by, id, end) => steps.changeOwned(by, 'settled', [id], asOwnEnd(end, steps.now())),
  }
}
