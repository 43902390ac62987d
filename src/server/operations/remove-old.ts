import { RsmError } from '../../core/errors.ts'
import type { Mutex } from '../../core/mutex.ts'
import type { OldData } from '../../core/protocol/control.ts'
import type { Data } from '../storage/ports/data.ts'
import type { TerminalRetention } from '../terminals/retention.ts'
import type { Retention } from './housekeeping/retention.ts'

interface Parts {
  readonly retention: Retention
  readonly oldTerminals: TerminalRetention
  /** Held by a backup and by other removals. */
  readonly dataLock: Mutex
  /** By one server of the store at a time. */
  readonly alone: Data['alone']
}

/** Says what is past its time or too much, and removes it unless that is only asked. Errors: `conflict` while a backup is made. */
export type RemoveOld = (options: { dryRun: boolean }) => Promise<OldData>

export function createRemoval({ retention, oldTerminals, dataLock, alone }: Parts): RemoveOld {
  async function remove(): Promise<void> {
    await retention.sweep()
    await oldTerminals.sweep()
  }
  return async ({ dryRun }) => {
    const release = dryRun ? () => undefined : dataLock.tryAcquire()
    // Nobody waits at a terminal for a backup of an hour.
    if (release === null) throw underWay()
    try {
      const plan = await retention.plan()
      const sessions = await oldTerminals.plan()
      const limits = {
        taskRetention: retention.days,
        recordingRetention: oldTerminals.days,
        maxOutputBytes: retention.maxOutputBytes,
      }
      if (!dryRun && !(await alone(remove))) throw underWay()
      return { ...limits, ...plan, terminals: sessions, removed: !dryRun }
    } finally {
      release()
    }
  }
}

const underWay = () =>
  new RsmError('conflict', 'a backup or another removal is under way: nothing was removed', {
    hint: 'try again when it has ended',
  })
