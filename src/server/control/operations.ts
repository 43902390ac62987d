import { RsmError } from '../../core/errors.ts'
import type { ControlOperations } from './control.ts'

/** What each operation of the control socket does: a line each, whose name and types are in core/protocol/control.ts. */
export function controlOperations(): ControlOperations {
  return {
    'confirm-restore': async () => {
      throw new RsmError('conflict', 'nothing is held: this server has noticed no restore from a backup')
    },
  }
}
